/*
 * output_folder.h - the folder that received files go to.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_OUTPUT_FOLDER_H
#define LH_CLI_FILE_OUTPUT_FOLDER_H

#include <stdbool.h>
#include <sys/types.h>

#define CLI_OUTPUT_FOLDER_REASON_MAX 4352

/* Opens a folder that this user may write to. False: reason, with the option --output and its value; nothing
 * is open. */
bool cli_output_folder_open(const char *path, int *folder, char reason[CLI_OUTPUT_FOLDER_REASON_MAX]);

/* The process's umask. Before there are other threads. */
mode_t cli_umask(void);

#endif
