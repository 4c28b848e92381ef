/*
 * result_file.h - a file of results: complete, or not there.
 *
 * Written beside PATH, as PATH.PID.part, and renamed when closed; a signal that ends the process removes it.
 * No file but PATH is replaced. PATH keeps its mode; links are followed. Where PATH is anything but a regular
 * file of ours with one name (a pipe, a device, a hard link), or its folder takes no new file, it is written
 * to directly.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RESULTS_RESULT_FILE_H
#define LH_CLI_RESULTS_RESULT_FILE_H

#include <stdio.h>

/* `what` precedes the path in messages: "--json ", "". NULL after reporting the cause. */
FILE *cli_result_open(const char *what, const char *path);
/* CLI_PROCEED, or refuses to write to the file that is read. */
int cli_result_spare(const char *what, const char *path, const char *input);
/* CLI_PROCEED; or reports the failure, and there is no file. */
int cli_result_close(const char *what, const char *path, FILE *file);
/* Forgets what was written. */
void cli_result_drop(FILE *file);
/* Reports why a file could not be opened to write. */
int cli_result_unwritable(const char *what, const char *path, int error);

#endif
