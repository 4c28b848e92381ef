/*
 * help.h - the --help of a command, from its table of options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_HELP_H
#define LH_CLI_OPTIONS_HELP_H

#include "cli/options/options.h"

/* Prints it on stdout; returns CLI_EXIT_OK. */
int cli_option_help(const struct cli_usage *usage);

#endif
