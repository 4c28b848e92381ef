/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/loss_list.h"

#include "cli/terminal/diagnostic.h"

#include <longhaul/error.h>
#include <longhaul/units.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any ratio, or two with dots between them, that make sense. */
#define PIECE_MAX 64

/* Ten times as much, without the last digit of rounding that would show. */
static double next_decade(double ratio)
{
    char text[PIECE_MAX];
    snprintf(text, sizeof text, "%.12g", ratio * 10);
    return strtod(text, NULL);
}

static int add_share(const char *option, struct cli_loss_list *list, double ratio)
{
    if (list->count == CLI_LOSSES_MAX)
        return cli_misused("--%s: more than %d ratios", option, CLI_LOSSES_MAX);
    list->ratio[list->count++] = ratio;
    return CLI_PROCEED;
}

/* One piece between commas: a share, or from..to. */
static int parse_shares(const char *option, char *piece, struct cli_loss_list *list)
{
    double from, to;
    char *dots = strstr(piece, "..");
    if (dots)
        *dots = 0;
    if (lh_parse_ratio(piece, &from) || (dots && lh_parse_ratio(dots + 2, &to)))
        return cli_misused("--%s %s", option, lh_last_error());
    if (!dots)
        return add_share(option, list, from);
    if (!(from > 0) || to < from)
        return cli_misused("--%s %s..%s: invalid range (example: 1e-6..1e-2)", option, piece, dots + 2);
    int status = CLI_PROCEED;
    /* As many rounds as the list has places. */
    for (double ratio = from; status == CLI_PROCEED && ratio <= to; ratio = next_decade(ratio))
        status = add_share(option, list, ratio);
    return status;
}

int cli_loss_list_parse(const char *option, const char *text, struct cli_loss_list *list)
{
    struct cli_loss_list parsed = {0};
    for (;;) {
        char piece[PIECE_MAX];
        size_t length = strcspn(text, ",");
        if (length >= sizeof piece)
            return cli_misused("--%s %s: invalid ratio (example: 0,1e-4,1%%)", option, text);
        memcpy(piece, text, length);
        piece[length] = 0;
        int status = parse_shares(option, piece, &parsed);
        if (status != CLI_PROCEED)
            return status;
        if (!text[length])
            break;
        text += length + 1;
    }
    *list = parsed;
    return CLI_PROCEED;
}

void cli_loss_format(double loss, char *out, size_t size)
{
    int exponent = loss > 0 ? (int)floor(log10(loss) + 1e-9) : 0;
    if (loss <= 0 || loss >= 1)
        snprintf(out, size, "%.3g", loss);
    else
        snprintf(out, size, "%.3ge%d", loss / pow(10, exponent), exponent);
}
