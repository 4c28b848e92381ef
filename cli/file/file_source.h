/*
 * file_source.h - one regular file that is read for others: opened, read in blocks, and watched for changes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_FILE_SOURCE_H
#define LH_CLI_FILE_FILE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

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
