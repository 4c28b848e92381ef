/*
 * connection.h - the options that several commands share: those that fill a struct lh_attr.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_CONNECTION_H
#define LH_CLI_OPTIONS_CONNECTION_H

#include "cli/options/options.h"

#include <longhaul/connection.h>

/* What a command does with its connection, and so which of the options it has. */
enum cli_role {
    CLI_RECEIVES = 1, /* --reliability */
    CLI_CONNECTS = 2, /* --link, --rate, --wait, --path-file */
    CLI_PARTIAL = 4,  /* what it receives may be incomplete: schemes with a deadline, too */
};

#define CLI_CONNECTION_OPTIONS_MAX 20
#define CLI_RELIABILITY_HELP_MAX   256

struct cli_connection {
    struct lh_attr attr;
    lh_time wait_ns; /* as of cli_connect() */
    struct cli_option options[CLI_CONNECTION_OPTIONS_MAX];
    char reliability_help[CLI_RELIABILITY_HELP_MAX];
    char congestion_help[CLI_RELIABILITY_HELP_MAX];
};

/* Defaults, and the table of options that change them. */
void cli_connection_options(struct cli_connection *connection, unsigned roles);

/* Help of --reliability: the schemes of the library; partial: those with a deadline, too. Returns out. */
const char *cli_reliability_help(char out[static CLI_RELIABILITY_HELP_MAX], bool partial);

#endif
