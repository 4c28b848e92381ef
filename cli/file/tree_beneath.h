/*
 * tree_beneath.h - opening paths below a folder, and nothing outside of it: no link is followed.
 *
 * By openat2(2); where that is missing, a folder at a time with O_NOFOLLOW.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_TREE_BENEATH_H
#define LH_CLI_FILE_TREE_BENEATH_H

#include <stddef.h>
#include <sys/types.h>

#include "cli/file/file_names.h"
#include "cli/file/tree_records.h"

/* Opens a path that cli_tree_path_wrong() lets pass, or "" for the root itself. The descriptor, closed on
 * exec; or -errno, -ELOOP: a part of it is a symbolic link, -ENOTDIR. */
int cli_beneath_open(int root, const char *path, int flags, mode_t mode);
/* The same without openat2(2). */
int cli_beneath_walk(int root, const char *path, int flags, mode_t mode);

/* The folder that a path lies in; it stays open for the next path that lies there, too. Set root, and folder
 * to -1; it must stay where it is. */
struct cli_beneath {
    int root;
    int folder;
    char path[CLI_TREE_PATH_MAX + 1]; /* of the folder */
    char name[CLI_FILE_NAME_MAX + 1]; /* the last part of the path */
};

/* The folder, for calls such as fstatat(2) only (O_PATH), with the name there in beneath->name; or -errno. */
int cli_beneath_parent(struct cli_beneath *beneath, const char *path, size_t bytes);
void cli_beneath_close(struct cli_beneath *beneath);

#endif
