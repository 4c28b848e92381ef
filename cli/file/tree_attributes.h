/*
 * tree_attributes.h - extended attributes and owners of files and folders: read into records, checked, set.
 *
 * Extended attributes: user.*, access control lists (system.posix_acl_*) and, if the process is root,
 * trusted.* and security.*; never security.capability, which gives a program rights as a set-user-ID bit
 * does.
 *
 * Owners: by the names of user and group; by numbers where the receiver does not know the names.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_TREE_ATTRIBUTES_H
#define LH_CLI_FILE_TREE_ATTRIBUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "cli/file/tree_records.h"

/* Of an entry: names and values, together. */
#define CLI_TREE_XATTRS_MAX ((size_t)1 << 20)

#define CLI_TREE_ATTRIBUTE_REASON_MAX 160

/* Of the name of a user or group; one with a longer name has its number only. */
#define CLI_TREE_ACCOUNT_MAX 63u

/* ---- sender ---------------------------------------------------------------------------------------- */

/* What is read of entries, and the records of one. Zeroed at first, besides the flags. */
struct cli_tree_reading {
    bool xattrs, owners;
    uint8_t *records; /* encoded; or NULL */
    size_t used;
    bool named; /* the names below are of these */
    uid_t user;
    gid_t group;
    char names[2 * (CLI_TREE_ACCOUNT_MAX + 1)];     /* "user:group" */
    char reason[CLI_TREE_ATTRIBUTE_REASON_MAX + 1]; /* after false */
};

/* Records of an open file; path: of them, empty for the file that FILE has begun. False: some are missing. */
bool cli_tree_reading_take(struct cli_tree_reading *reading, int file, const struct stat *status,
                           const char *path, size_t path_bytes);
/* Of a symbolic link, which has an owner only. */
bool cli_tree_reading_take_owner(struct cli_tree_reading *reading, const struct stat *status,
                                 const char *path, size_t path_bytes);
void cli_tree_reading_close(struct cli_tree_reading *reading);

/* ---- receiver -------------------------------------------------------------------------------------- */

/* What an entry is to have. Zeroed at first. */
struct cli_tree_dress {
    uint8_t *xattrs; /* those of the entry, one behind the other */
    size_t used;
    bool owned;
    uid_t user;
    gid_t group;
    char reason[CLI_TREE_ATTRIBUTE_REASON_MAX + 1]; /* of the first that cannot be set, or "" */
};

/* Takes a record of CLI_TREE_XATTR or CLI_TREE_OWNER. */
void cli_tree_dress_take(struct cli_tree_dress *dress, const struct cli_tree_record *record);
/* Sets all of it on an open file or folder; access control lists permit nothing that the umask does not. */
void cli_tree_dress_put_on(struct cli_tree_dress *dress, int file, mode_t umask);
/* For the next entry. */
void cli_tree_dress_clear(struct cli_tree_dress *dress);

#endif
