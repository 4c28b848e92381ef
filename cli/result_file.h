/*
 * result_file.h - a file of results: it is there with all of its content, or it is not there.
 *
 * It is written beside its place, as PATH.part, and takes its place when it is closed. What is no plain file
 * (a pipe, a device, a link to somewhere) is written to directly.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_RESULT_FILE_H
#define CLI_RESULT_FILE_H

#include <stdio.h>

/* `what` stands before the path in messages: "--json: ", "". NULL after saying why it cannot be written. */
FILE *cli_result_open(const char *what, const char *path);
/* CLI_PROCEED; or says that writing failed, and then there is no file. */
int cli_result_close(const char *what, const char *path, FILE *file);
/* Forgets what was written. */
void cli_result_drop(const char *path, FILE *file);

#endif
