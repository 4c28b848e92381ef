/*
 * folder.h - the folder that results are written to, and files in it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RESULTS_FOLDER_H
#define LH_CLI_RESULTS_FOLDER_H

#include <limits.h>
#include <stdio.h>

/* Of a folder that is named after something; room for ".part" and the like stays. */
#define CLI_FOLDER_NAME_MAX (NAME_MAX - 8)

struct cli_folder {
    char path[PATH_MAX]; /* "": nothing is to be written */
};

/* Makes the folder, and those above it, where they do not exist. CLI_PROCEED, or reports the cause. */
int cli_folder_make(struct cli_folder *folder, const char *path);
/* Whether the folder is writable: CLI_PROCEED, or reports the cause. */
int cli_folder_check(const struct cli_folder *folder);
/* The name of a folder made of a text, into out[CLI_FOLDER_NAME_MAX]: characters that do not belong into
 * a name become '_', and it ends where names must. Returns out. */
char *cli_folder_name(const char *text, char *out);
/* Makes a folder of that name, as above, in another. */
int cli_folder_make_in(struct cli_folder *folder, const struct cli_folder *above, const char *name);

/* Opens a file to write, as result_file.h: it is there once it is closed. NULL after reporting the cause. */
FILE *cli_folder_open(const struct cli_folder *folder, const char *name);
/* Closes it. CLI_PROCEED, or reports the failure. */
int cli_folder_close(const struct cli_folder *folder, const char *name, FILE *file);
/* Forgets what was written. */
void cli_folder_drop(const struct cli_folder *folder, const char *name, FILE *file);
/* Takes a file away where there is one. */
void cli_folder_remove(const struct cli_folder *folder, const char *name);

#endif
