/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/suggest.h"

#include <string.h>

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

unsigned cli_distance(const char *one, const char *other)
{
    size_t rows = strnlen(one, CLI_SUGGEST_MAX), columns = strnlen(other, CLI_SUGGEST_MAX);
    unsigned line[CLI_SUGGEST_MAX + 1];
    for (size_t column = 0; column <= columns; column++)
        line[column] = (unsigned)column;
    for (size_t row = 1; row <= rows; row++) {
        unsigned diagonal = line[0];
        line[0] = (unsigned)row;
        for (size_t column = 1; column <= columns; column++) {
            unsigned replaced = diagonal + (one[row - 1] != other[column - 1]);
            diagonal = line[column];
            line[column] = least(replaced, diagonal + 1, line[column - 1] + 1);
        }
    }
    return line[columns];
}

int cli_is_close(const char *typed, const char *word)
{
    size_t shorter = strlen(typed) < strlen(word) ? strlen(typed) : strlen(word);
    return shorter > 1 &&
           (cli_distance(typed, word) <= 1 + shorter / 5 || !strncmp(typed, word, strlen(typed)));
}
