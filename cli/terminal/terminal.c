/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/terminal/terminal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define USUAL_COLUMNS 80
#define USUAL_ROWS    24

/* Launchers of MPI give a rank a terminal of their own, and copy it to what may be a file. */
static bool is_launched(void)
{
    return getenv("PMIX_RANK") || getenv("OMPI_COMM_WORLD_RANK");
}

bool cli_terminal_colours(int descriptor)
{
    const char *refused = getenv("NO_COLOR"), *terminal = getenv("TERM");
    if (!isatty(descriptor) || (refused && *refused) || is_launched())
        return false;
    return terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

unsigned cli_terminal_columns(int descriptor)
{
    struct winsize size;
    if (ioctl(descriptor, TIOCGWINSZ, &size) || !size.ws_col)
        return USUAL_COLUMNS;
    return size.ws_col;
}

unsigned cli_terminal_rows(int descriptor)
{
    struct winsize size;
    if (ioctl(descriptor, TIOCGWINSZ, &size) || !size.ws_row)
        return USUAL_ROWS;
    return size.ws_row;
}

const char *cli_colour(enum cli_colour colour, bool colours)
{
    static const char *const codes[] = {
        [CLI_PLAIN] = "\033[0m",  [CLI_BOLD] = "\033[1m",    [CLI_DIM] = "\033[2m",
        [CLI_GREEN] = "\033[32m", [CLI_YELLOW] = "\033[33m", [CLI_RED] = "\033[31m",
    };
    return colours ? codes[colour] : "";
}

bool cli_terminal_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *locale = getenv(names[i]);
        if (locale && *locale)
            return strcasestr(locale, "UTF-8") || strcasestr(locale, "UTF8");
    }
    return false; /* the locale C */
}

const char *cli_text_shown(const char *text, char *out, size_t size)
{
    static const char *const signs[][2] = {
        {"─", "-"}, {"→", ">"}, {"×", "x"}, {"±", "+-"}, {"≥", ">="}, {"…", "..."}, {"µ", "u"},
    };
    size_t used = 0;
    if (cli_terminal_utf8())
        return text;
    while (*text && used + sizeof "..." < size) {
        size_t i = 0;
        while (i < sizeof signs / sizeof signs[0] && strncmp(text, signs[i][0], strlen(signs[i][0])) != 0)
            i++;
        bool found = i < sizeof signs / sizeof signs[0];
        used += (size_t)snprintf(out + used, size - used, "%.*s", found ? INT_MAX : 1,
                                 found ? signs[i][1] : text);
        text += found ? strlen(signs[i][0]) : 1;
    }
    out[used] = '\0';
    return out;
}

const char *cli_plural(double count)
{
    return count == 1 ? "" : "s";
}

unsigned cli_text_columns(const char *text)
{
    unsigned columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xC0) != 0x80; /* not a continuation byte */
    return columns;
}

/* Bytes of the control character that text starts with; 0: none. C1 controls are C2 80 to C2 9F in UTF-8.
 */
static size_t control_bytes(const char *text, size_t bytes)
{
    unsigned char first = (unsigned char)text[0], second = bytes > 1 ? (unsigned char)text[1] : 0;
    if (first < 0x20 || first == 0x7F)
        return 1;
    return first == 0xC2 && second >= 0x80 && second <= 0x9F ? 2 : 0;
}

bool cli_text_is_clean(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (control_bytes(text + i, bytes - i))
            return false;
    return true;
}

void cli_text_clean(char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        memset(text + i, '?', control_bytes(text + i, bytes - i));
}
