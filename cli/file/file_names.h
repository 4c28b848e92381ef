/*
 * owned_file.h - opens a file in a folder that others may write to, but nothing that they planted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_OWNED_FILE_H
#define LH_CLI_FILE_OWNED_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

struct cli_owned_file {
    int file;
    bool created; /* else it was there */
    const char *obstacle;
};

/* Opens the plain file of that name to read and write, or creates it with mode 0600; follows no link. 0;
 * -EEXIST: something else has the name, described by obstacle; -ENOENT: it went away meanwhile; -errno. */
int cli_owned_open(int folder, const char *name, struct cli_owned_file *opened);

/* NULL, or what keeps the file from being written to, as a noun: it is no plain file, another user's, or has
 * hard links. */
const char *cli_owned_obstacle(const struct stat *status, bool created);

/* Whether the name is that of the file that the status is of. */
bool cli_still_named(int folder, const char *name, const struct stat *opened);

/* Removes the name, if it still is that of the open file. */
void cli_remove_own(int folder, const char *name, int file);

#endif
