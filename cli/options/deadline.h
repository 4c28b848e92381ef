/*
 * deadline.h - reliability with a deadline: not every byte arrives.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_DEADLINE_H
#define LH_CLI_OPTIONS_DEADLINE_H

#include <stdbool.h>

/* Whether messages of this reliability (NULL: the default) have a deadline. */
bool cli_has_deadline(const char *reliability);

#endif
