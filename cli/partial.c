/* SPDX-License-Identifier: BSD-3-Clause */
#include "partial.h"

#include "disk_space.h"
#include "whole_io.h"

#include <longhaul/units.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_ROOM (CLI_FILE_NAME_MAX + 32)
/* Opening can meet the very moment in which another process gives the name up; that cannot go on for long.
 */
#define OPEN_TRIES 16

static void temporary_name(const struct cli_partial *partial, const char *suffix, char out[NAME_ROOM])
{
    snprintf(out, NAME_ROOM, ".%s%s", partial->name, suffix);
}

static bool give_reason(struct cli_partial *partial, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(partial->reason, sizeof partial->reason, format, arguments);
    va_end(arguments);
    return false;
}

static bool system_failed(struct cli_partial *partial, const char *doing, int error)
{
    return give_reason(partial, "%s failed: %s", doing, strerror(error));
}

/* Whether the final name is free, or may be replaced. */
static bool check_final_name(struct cli_partial *partial)
{
    struct stat status;
    if (fstatat(partial->folder, partial->name, &status, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT || system_failed(partial, "looking for a file of that name", errno);
    if (S_ISDIR(status.st_mode))
        return give_reason(partial, "a folder of that name exists");
    if (!partial->force)
        return give_reason(partial, "a file of that name exists (recv --force replaces it)");
    return true;
}

static void close_both(struct cli_partial *partial)
{
    if (partial->file >= 0)
        close(partial->file);
    if (partial->sidecar >= 0)
        close(partial->sidecar);
    partial->file = partial->sidecar = -1;
}

/* Whether the name still leads to what was opened. */
static bool still_named(const struct cli_partial *partial, const char *name, const struct stat *opened)
{
    struct stat named;
    return !fstatat(partial->folder, name, &named, AT_SYMLINK_NOFOLLOW) && named.st_ino == opened->st_ino &&
           named.st_dev == opened->st_dev;
}

/* 1: opened and locked; 0: it went away meanwhile; -errno. */
static int open_locked(struct cli_partial *partial, const char *name)
{
    struct stat status;
    int error = 0;
    int file = openat(partial->folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
    if (file < 0)
        return -errno;
    if (flock(file, LOCK_EX | LOCK_NB) || fstat(file, &status))
        error = errno;
    else if (!S_ISREG(status.st_mode))
        error = EEXIST;
    if (!error && still_named(partial, name, &status)) {
        partial->file = file;
        return 1;
    }
    close(file);
    return -error;
}

static bool open_both(struct cli_partial *partial)
{
    char name[NAME_ROOM];
    int opened = 0;
    temporary_name(partial, CLI_PARTIAL_SUFFIX, name);
    for (int tries = 0; tries < OPEN_TRIES && !opened; tries++)
        opened = open_locked(partial, name);
    if (opened == -EWOULDBLOCK)
        return give_reason(partial, "another transfer to that name is running");
    if (opened != 1)
        return system_failed(partial, "creating the file", opened ? -opened : EBUSY);
    temporary_name(partial, CLI_RESUME_SUFFIX, name);
    /* Written under the lock on the partial file. */
    partial->sidecar =
        openat(partial->folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
    return partial->sidecar >= 0 || system_failed(partial, "creating the file", errno);
}

static bool no_space(struct cli_partial *partial, int error)
{
    char size[LH_FORMAT_MAX];
    lh_format_size(partial->size_bytes, size, sizeof size);
    return give_reason(partial, "setting %s aside failed: %s", size, strerror(error));
}

/* A disk that is too small is better found now than after an hour. Space is set aside as bytes come. */
static bool check_space(struct cli_partial *partial)
{
    if (partial->size_bytes > INT64_MAX)
        return give_reason(partial, "no file can be that long");
    int code = cli_disk_space_check(partial->file, partial->size_bytes);
    return !code || no_space(partial, -code);
}

bool cli_partial_open(struct cli_partial *partial, int folder, const char *name, uint64_t size_bytes,
                      bool force, bool resume)
{
    *partial = (struct cli_partial){
        .folder = folder, .file = -1, .sidecar = -1, .size_bytes = size_bytes, .force = force};
    snprintf(partial->name, sizeof partial->name, "%s", name);
    if (!check_final_name(partial))
        return false;
    if (open_both(partial) && check_space(partial) && (resume || cli_partial_start(partial, 0)))
        return true;
    cli_partial_abandon(partial, resume);
    return false;
}

bool cli_partial_check(struct cli_partial *partial, uint8_t *block, struct cli_digest *digest,
                       int (*stopped)(void), struct cli_resume_point *point)
{
    int code = cli_resume_check(partial->sidecar, partial->file, partial->size_bytes, block, digest,
                                stopped, point);
    if (code)
        return system_failed(partial, "reading the unfinished file", -code);
    partial->blocks_recorded = point->blocks;
    return true;
}

bool cli_partial_start(struct cli_partial *partial, uint64_t blocks)
{
    /* Records first: they may say less than the file holds, never more. */
    partial->started = true;
    int code = cli_resume_start(partial->sidecar, partial->size_bytes, blocks);
    if (code)
        return system_failed(partial, "writing the file", -code);
    partial->blocks_recorded = blocks;
    if (ftruncate(partial->file, (off_t)(blocks * CLI_BLOCK_BYTES)))
        return system_failed(partial, "writing the file", errno);
    partial->reserved_bytes = blocks * CLI_BLOCK_BYTES;
    return true;
}

bool cli_partial_write(struct cli_partial *partial, uint64_t offset, const void *data, size_t bytes)
{
    int code = cli_disk_space_reserve(partial->file, partial->size_bytes, offset + bytes,
                                      &partial->reserved_bytes);
    if (code)
        return no_space(partial, -code);
    code = cli_write_at(partial->file, data, bytes, offset);
    if (code)
        return system_failed(partial, "writing the file", -code);
    /* Starts the way to the disk now, so that little is left to do at the end. Only a hint. */
    sync_file_range(partial->file, (off_t)offset, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
    return true;
}

bool cli_partial_record(struct cli_partial *partial, uint64_t block, const uint8_t digest[CLI_DIGEST_BYTES])
{
    int code = cli_resume_record(partial->sidecar, block, digest);
    if (code)
        return system_failed(partial, "writing the file", -code);
    partial->blocks_recorded = block + 1;
    return true;
}

/* Gives the file its final name; never replaces one that appeared meanwhile, unless forced. */
static bool take_final_name(struct cli_partial *partial)
{
    char from[NAME_ROOM];
    int folder = partial->folder;
    temporary_name(partial, CLI_PARTIAL_SUFFIX, from);
    if (!partial->force) {
        if (!renameat2(folder, from, folder, partial->name, RENAME_NOREPLACE))
            return true;
        if (errno == EEXIST)
            return give_reason(partial, "a file of that name appeared meanwhile");
        if (errno != EINVAL && errno != ENOSYS)
            return system_failed(partial, "giving the file its name", errno);
        /* A file system without that: look, then rename. */
        if (!check_final_name(partial))
            return false;
    }
    return !renameat(folder, from, folder, partial->name) ||
           system_failed(partial, "giving the file its name", errno);
}

bool cli_partial_commit(struct cli_partial *partial)
{
    char name[NAME_ROOM];
    if (ftruncate(partial->file, (off_t)partial->size_bytes) || fsync(partial->file))
        return system_failed(partial, "writing the file to disk", errno);
    if (!take_final_name(partial))
        return false;
    temporary_name(partial, CLI_RESUME_SUFFIX, name);
    unlinkat(partial->folder, name, 0);
    /* The name itself; folders that cannot be synced (some network file systems) do it on their own. */
    fsync(partial->folder);
    close_both(partial);
    return true;
}

/* Whether somebody who resumes would find something. */
static bool worth_keeping(const struct cli_partial *partial)
{
    struct stat status;
    if (partial->started)
        return partial->blocks_recorded > 0;
    return !fstat(partial->file, &status) && status.st_size > 0;
}

void cli_partial_abandon(struct cli_partial *partial, bool keep)
{
    char name[NAME_ROOM];
    if (partial->file >= 0 && !(keep && worth_keeping(partial))) {
        temporary_name(partial, CLI_PARTIAL_SUFFIX, name);
        unlinkat(partial->folder, name, 0);
        temporary_name(partial, CLI_RESUME_SUFFIX, name);
        unlinkat(partial->folder, name, 0);
    }
    close_both(partial);
}
