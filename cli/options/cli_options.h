/*
 * cli_options.h - a command's options as a table: parsed, checked and explained from the same lines;
 * suggestions for misspelt ones.
 *
 * "--name VALUE", "--name=VALUE", "-x VALUE" for those with a letter; "--" ends the options. Options and
 * operands may be mixed. Errors are one line on stderr with the value and the remedy.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_CLI_OPTIONS_H
#define LH_CLI_OPTIONS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/connection.h>

/* The type that target points at. */
enum cli_option_kind {
    CLI_FLAG,       /* bool, set to true */
    CLI_TEXT,       /* const char *, into argv */
    CLI_TEXTS,      /* struct cli_texts: may be given several times */
    CLI_COUNT,      /* uint32_t */
    CLI_SIZE,       /* uint64_t, bytes */
    CLI_SIZE32,     /* uint32_t, bytes */
    CLI_BINARY,     /* as CLI_SIZE, and a bare K, M, G or T is a power of 1024 */
    CLI_RATE,       /* uint64_t, bits per second */
    CLI_TIME,       /* lh_time */
    CLI_LINK,       /* struct lh_link_spec */
    CLI_SCHEME,     /* const char *, into argv: a scheme with parameters that it takes */
    CLI_CONGESTION, /* likewise a congestion controller */
};

#define CLI_TEXTS_MAX 64

struct cli_texts {
    unsigned count;
    const char *text[CLI_TEXTS_MAX];
};

#define CLI_POWER_OF_TWO UINT32_MAX

struct cli_option {
    const char *name;  /* without the dashes; NULL ends a table */
    const char *value; /* what the help calls the value; NULL for a flag */
    const char *help;
    void *target;
    enum cli_option_kind kind;
    char letter;       /* 0: none */
    uint32_t multiple; /* counts and sizes: of what; CLI_POWER_OF_TWO; 0: any */
    uint64_t min, max; /* counts, sizes, times; max 0: no limit */
};

/* An option of a comparable program that users try here: "-np", "--iters". */
struct cli_foreign_option {
    const char *name;   /* without the dashes; NULL ends a table */
    const char *remedy; /* "use -n N" */
};

#define CLI_OPTION_GROUPS_MAX 4

struct cli_usage {
    const char *command;                                    /* "send" */
    const char *operands;                                   /* "FILE HOST[:PORT]" */
    const char *about;                                      /* a sentence or a few lines, for --help */
    const char *more;                                       /* shown below the options in --help, or NULL */
    const struct cli_option *groups[CLI_OPTION_GROUPS_MAX]; /* shown in this order; NULL ends */
    const struct cli_foreign_option *foreign;               /* explained, not taken; NULL: none */
    unsigned operands_min, operands_max;
    const char *operands_taken; /* "one FILE and one HOST"; NULL where the most is none or one */
};

#define CLI_OPERANDS_MAX 256

struct cli_operands {
    unsigned count;
    const char *text[CLI_OPERANDS_MAX];
};

/* Reads argv[1] and on. CLI_PROCEED; CLI_EXIT_OK when it was asked for help and printed it; CLI_EXIT_USAGE.
 */
int cli_options_parse(const struct cli_usage *usage, int argc, char **argv, struct cli_operands *operands);

/* ---- suggest --------------------------------------------------------------------------------------- */

/* The word closest to a mistyped one. */

/* Insertions, deletions and replacements that make one out of the other; words longer than CLI_SUGGEST_MAX
 * are cut. */
unsigned cli_distance(const char *one, const char *other);

/* Whether a word is close enough to the typed one to suggest it. */
int cli_is_close(const char *typed, const char *word);

#endif
