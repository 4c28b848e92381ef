/*
 * value.h - from the text of an option's value to its target, with the checks its table line asks
 * for.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_VALUE_H
#define LH_CLI_OPTIONS_VALUE_H

#include "cli/options/options.h"

/* Sets *option->target, only when the text is right. CLI_PROCEED, or CLI_EXIT_USAGE after reporting the
 * cause. */
int cli_option_value(const struct cli_option *option, const char *text);

/* Whether the text is a scheme of this build with parameters that it takes: CLI_PROCEED or CLI_EXIT_USAGE.
 */
int cli_check_scheme(const char *option, const char *text);

#endif
