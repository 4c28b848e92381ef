/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/size_list.h"

#include "cli/terminal/diagnostic.h"

#include <longhaul/error.h>
#include <longhaul/units.h>

#include <stdio.h>
#include <string.h>

/* Longer than any size that makes sense. */
#define PIECE_MAX 64

static int parse_size(const char *option, const char *text, uint64_t max_bytes, uint64_t *bytes)
{
    char most[LH_FORMAT_MAX];
    uint64_t parsed;
    int code = lh_parse_size(text, &parsed);
    if (code)
        return cli_misused("--%s %s", option, lh_last_error());
    lh_format_size(max_bytes, most, sizeof most);
    if (!parsed || parsed > max_bytes)
        return cli_misused("--%s %s: out of range (1B to %s)", option, text, most);
    *bytes = parsed;
    return CLI_PROCEED;
}

static int append(const char *option, struct cli_size_list *list, uint64_t bytes)
{
    if (list->count == CLI_SIZES_MAX)
        return cli_misused("--%s: more than %d sizes", option, CLI_SIZES_MAX);
    list->bytes[list->count++] = bytes;
    return CLI_PROCEED;
}

/* One piece between commas: a size, or from..to. */
static int parse_piece(const char *option, char *piece, uint64_t max_bytes, struct cli_size_list *list)
{
    uint64_t from, to;
    char *dots = strstr(piece, "..");
    if (dots)
        *dots = 0;
    int status = parse_size(option, piece, max_bytes, &from);
    to = from;
    if (status == CLI_PROCEED && dots)
        status = parse_size(option, dots + 2, max_bytes, &to);
    if (status == CLI_PROCEED && to < from)
        return cli_misused("--%s %s..%s: invalid range (smaller size first)", option, piece, dots + 2);
    for (uint64_t bytes = from; status == CLI_PROCEED && bytes <= to; bytes *= 2)
        status = append(option, list, bytes);
    return status;
}

int cli_size_list_parse(const char *option, const char *text, uint64_t max_bytes,
                        struct cli_size_list *list)
{
    struct cli_size_list parsed = {0};
    for (;;) {
        char piece[PIECE_MAX];
        size_t length = strcspn(text, ",");
        if (length >= sizeof piece)
            return cli_misused("--%s %s: invalid size (example: 64KiB or 64KiB..64MiB)", option, text);
        memcpy(piece, text, length);
        piece[length] = 0;
        int status = parse_piece(option, piece, max_bytes, &parsed);
        if (status != CLI_PROCEED)
            return status;
        if (!text[length])
            break;
        text += length + 1;
    }
    *list = parsed;
    return CLI_PROCEED;
}
