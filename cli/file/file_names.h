/*
 * file_names.h - output files and folders: permitted names, ownership, whole reads and writes; a source file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_FILE_NAMES_H
#define LH_CLI_FILE_FILE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

/* What file systems take (NAME_MAX), and a message carries. */
#define CLI_FILE_NAME_MAX 255

/* What names of unfinished files end in. */
#define CLI_PARTIAL_SUFFIX ".longhaul-partial"
#define CLI_RESUME_SUFFIX  ".longhaul-resume"
#define CLI_COMMIT_SUFFIX  ".longhaul-commit"

/* The name of an unfinished file: .NAME and the suffix; where that is longer than a name may be, the
 * beginning of NAME and its digest take its place. So it is found again by NAME alone, also after a crash.
 * Returns out. */
char *cli_file_name_unfinished(const char *name, const char *suffix, char out[CLI_FILE_NAME_MAX + 1]);

/* NULL when the name is one plain name that is safe to create; else what is wrong with it, in words that go
 * after "the name". */
const char *cli_file_name_wrong(const char *name, size_t bytes);
/* Whether the name could be that of an unfinished file. */
bool cli_file_name_reserved(const char *name, size_t bytes);

/* ---- final name ------------------------------------------------------------------------------------ */

/* Gives an open file its final name: that file, never what a name happens to lead to. */

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

/* Renames within the folder; without force the new name must be free. 0; -EEXIST; -errno. */
int cli_file_rename(int folder, const char *from, const char *to, bool force);

/* ---- owned file ------------------------------------------------------------------------------------ */

/* Opens a file in a folder that others may write to, but nothing that they planted. */

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

/* ---- whole io -------------------------------------------------------------------------------------- */

/* Pread and pwrite that go on until all is done. */

/* Bytes read, fewer only at the end of the file; or -errno. */
int64_t cli_read_at(int file, void *data, size_t bytes, uint64_t offset);
/* 0 or -errno. */
int cli_write_at(int file, const void *data, size_t bytes, uint64_t offset);

/* ---- output folder --------------------------------------------------------------------------------- */

/* The folder that received files go to. */

#define CLI_OUTPUT_FOLDER_REASON_MAX 4352

/* Opens a folder that this user may write to. False: reason, with the path as what ("--output") names it;
 * nothing is open. */
bool cli_output_folder_open(const char *what, const char *path, int *folder,
                            char reason[CLI_OUTPUT_FOLDER_REASON_MAX]);

/* The process's umask. Before there are other threads. */
mode_t cli_umask(void);

/* ---- source ---------------------------------------------------------------------------------------- */

/* One regular file that is read for others: opened, read in blocks, and watched for changes. */

#define CLI_SOURCE_REASON_MAX 160

struct cli_source {
    const char *path;
    const char *name; /* its last part */
    int file;
    uint64_t size_bytes;
    mode_t mode;                        /* of 0777: its permissions */
    struct timespec written;            /* when it was last written to, as seen when it was opened */
    char reason[CLI_SOURCE_REASON_MAX]; /* after a call that returned false: why, without the name */
};

/* Opens a plain file whose name a receiver takes. The path must stay. */
bool cli_source_open(struct cli_source *source, const char *path);
void cli_source_close(struct cli_source *source);

/* Reads just that many bytes; false also when the file has become too short for that. */
bool cli_source_read(struct cli_source *source, uint64_t offset, void *data, size_t bytes);
/* Whether it still is the file that was opened: neither its size nor its time of writing changed. (One that
 * was deleted meanwhile is: it stays whole for who has it open.) */
bool cli_source_unchanged(struct cli_source *source);

#endif
