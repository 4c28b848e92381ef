/*
 * read_text.h - a text file, read whole.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RESULTS_READ_TEXT_H
#define LH_CLI_RESULTS_READ_TEXT_H

#include <stddef.h>

/* Reads a whole file of at most most_bytes: allocated, with a zero behind. NULL after reporting the cause,
 * with `what` before the path. */
char *cli_read_text(const char *what, const char *path, size_t most_bytes, size_t *bytes);

#endif
