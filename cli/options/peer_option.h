/*
 * peer_option.h - options that only the command of the peer has.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_PEER_OPTION_H
#define LH_CLI_OPTIONS_PEER_OPTION_H

#include <stddef.h>

struct cli_peer_option {
    const char *command; /* where it is typed, and unknown */
    const char *option;  /* without the dashes */
    const char *other;   /* the command that has it */
    const char *why;     /* "the receiver chooses the scheme" */
};

/* The entry for `length` bytes of an option's name; NULL: no command on the peer has it. */
const struct cli_peer_option *cli_peer_option_find(const char *command, const char *name, size_t length);

#endif
