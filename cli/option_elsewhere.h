/*
 * option_elsewhere.h - options that only the command on the other side has.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_OPTION_ELSEWHERE_H
#define CLI_OPTION_ELSEWHERE_H

#include <stddef.h>

struct cli_elsewhere {
    const char *command; /* where it is typed, and unknown */
    const char *option;  /* without the dashes */
    const char *other;   /* the command that has it */
    const char *why;     /* "the receiver chooses the scheme" */
};

/* The entry for `length` bytes of an option's name; NULL: no command on the other side has it. */
const struct cli_elsewhere *cli_option_elsewhere(const char *command, const char *name, size_t length);

#endif
