/*
 * final_name.h - gives an open file its final name: that file, never what a name happens to lead to.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_FINAL_NAME_H
#define LH_CLI_FILE_FINAL_NAME_H

#include <stdbool.h>

struct cli_final_name {
    int folder;
    int file;            /* open */
    const char *partial; /* its name so far */
    const char *fresh;   /* free for use meanwhile */
    const char *final;
    bool force; /* may replace a file */
};

/* Links the open file to its final name and removes the one it had. Where hard links are not supported (vfat,
 * some FUSE file systems) or /proc is missing, renames it, and compares device and inode before and after.
 * Returns 0; -EEXIST: the final name is taken; -ENOENT: the file has no name left; -ESTALE: another file has
 * taken one of the names; -errno. */
int cli_final_name_take(const struct cli_final_name *names);

#endif
