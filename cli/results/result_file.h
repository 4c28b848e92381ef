/*
 * result_file.h - a file of results: complete, or not there.
 *
 * Written as PATH.part and renamed when closed; a signal that ends the process removes it. Anything but a
 * regular file (a pipe, a device, a link) is written to directly.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RESULTS_RESULT_FILE_H
#define LH_CLI_RESULTS_RESULT_FILE_H

#include <stdio.h>

/* `what` precedes the path in messages: "--json ", "". NULL after reporting the cause. */
FILE *cli_result_open(const char *what, const char *path);
/* CLI_PROCEED; or reports the failure, and there is no file. */
int cli_result_close(const char *what, const char *path, FILE *file);
/* Forgets what was written. */
void cli_result_drop(const char *path, FILE *file);

#endif
