/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss_list.h"

#include "options.h"
#include "say.h"

#include <longhaul/error.h>
#include <longhaul/units.h>

#include <string.h>

/* Longer than any ratio that makes sense. */
#define PIECE_MAX 32

int cli_loss_list_parse(const char *option, const char *text, struct cli_loss_list *list)
{
    struct cli_loss_list parsed = {0};
    for (;;) {
        char piece[PIECE_MAX];
        size_t length = strcspn(text, ",");
        if (parsed.count == CLI_LOSSES_MAX)
            return cli_misused("--%s: more than %d shares", option, CLI_LOSSES_MAX);
        if (length >= sizeof piece)
            return cli_misused("--%s: \"%s\" is not a share; for instance 0,1e-4,1%%", option, text);
        memcpy(piece, text, length);
        piece[length] = 0;
        if (lh_parse_ratio(piece, &parsed.ratio[parsed.count]))
            return cli_misused("--%s: %s", option, lh_last_error());
        parsed.count++;
        if (!text[length])
            break;
        text += length + 1;
    }
    *list = parsed;
    return CLI_PROCEED;
}
