/*
 * folder.h - the folder that results are written to, and files in it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_FOLDER_H
#define CLI_FOLDER_H

#include <limits.h>
#include <stdio.h>

struct cli_folder {
    char path[PATH_MAX]; /* "": nothing is to be written */
};

/* Makes the folder, and those above it, where they do not exist. CLI_PROCEED, or says why not. */
int cli_folder_make(struct cli_folder *folder, const char *path);
/* The same for a folder in it; characters that do not belong into a name become '_'. */
int cli_folder_make_in(struct cli_folder *folder, const struct cli_folder *above, const char *name);

/* Opens a file to write; NULL after saying why not. */
FILE *cli_folder_open(const struct cli_folder *folder, const char *name);
/* Closes it. CLI_PROCEED, or says that writing failed. */
int cli_folder_close(const struct cli_folder *folder, const char *name, FILE *file);

/* Reads a whole file of at most most_bytes: allocated, with a zero behind. NULL after saying why not, with
 * `what` before the path. */
char *cli_read_text(const char *what, const char *path, size_t most_bytes, size_t *bytes);

#endif
