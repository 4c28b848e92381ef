/*
 * result_file.h - files and folders of results: complete, or not there.
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

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
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

/* ---- folder ---------------------------------------------------------------------------------------- */

/* The folder that results are written to, and files in it. */

/* Of a folder that is named after something; room for ".part" and the like stays. */
#define CLI_FOLDER_NAME_MAX (NAME_MAX - 8)

struct cli_folder {
    char path[PATH_MAX]; /* "": nothing is to be written */
};

/* Makes the folder, and those above it, where they do not exist. `what` precedes the path in messages:
 * "--output ". CLI_PROCEED, or reports the cause. */
int cli_folder_make(struct cli_folder *folder, const char *what, const char *path);
/* Whether the folder is writable: CLI_PROCEED, or reports the cause. */
int cli_folder_check(const struct cli_folder *folder);
/* The name of a folder made of a text, into out[CLI_FOLDER_NAME_MAX]: characters that do not belong into
 * a name become '_', and it ends where names must. Returns out. */
char *cli_folder_name(const char *text, char *out);
/* Makes a folder of that name, as above, in another. */
int cli_folder_make_in(struct cli_folder *folder, const struct cli_folder *above, const char *name);

/* A mark of ours in a folder: files in it whose names the user did not give are ours to replace and to
 * remove. Made before the first of them; elsewhere such names are refused. */
bool cli_folder_is_marked(const struct cli_folder *folder);
int cli_folder_mark(const struct cli_folder *folder);
void cli_folder_unmark(const struct cli_folder *folder);
/* CLI_PROCEED where nothing has that name; else refuses the folder of that option, which is not marked. */
int cli_folder_vacant(const struct cli_folder *folder, const char *what, const char *name);

/* Opens a file to write, as result_file.h, whose cli_result_drop() forgets it: it is there once it is closed.
 * NULL after reporting the cause. */
FILE *cli_folder_open(const struct cli_folder *folder, const char *name);
/* Closes it. CLI_PROCEED, or reports the failure. */
int cli_folder_close(const struct cli_folder *folder, const char *name, FILE *file);
/* Takes a regular file away where there is one. */
void cli_folder_remove(const struct cli_folder *folder, const char *name);

/* ---- read text ------------------------------------------------------------------------------------- */

/* A text file, read whole. */

/* Reads a whole file of at most most_bytes: allocated, with a zero behind. NULL after reporting the cause,
 * with `what` before the path. */
char *cli_read_text(const char *what, const char *path, size_t most_bytes, size_t *bytes);

#endif
