/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/file_partial.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/units.h>

#include "cli/file/file_blocks.h"
#include "cli/file/file_names.h"

/* ---- resume ---------------------------------------------------------------------------------------- */

#define RESUME_HEADER  24
#define HEADER_SIZE_AT 16
#define RESUME_VERSION 1

static const char magic[8] = {'L', 'H', 'R', 'E', 'S', 'U', 'M', 'E'};

static void make_header(uint64_t size_bytes, uint8_t out[RESUME_HEADER])
{
    memcpy(out, magic, sizeof magic);
    cli_put_u32(out + 8, RESUME_VERSION);
    cli_put_u32(out + 12, (uint32_t)CLI_BLOCK_BYTES);
    cli_put_u64(out + HEADER_SIZE_AT, size_bytes);
}

static uint64_t record_offset(uint64_t block)
{
    return RESUME_HEADER + block * CLI_DIGEST_BYTES;
}

/* Writes the header and truncates after `keep` records. */
static int cli_resume_start(int sidecar, uint64_t size_bytes, uint64_t keep)
{
    uint8_t header[RESUME_HEADER];
    make_header(size_bytes, header);
    if (ftruncate(sidecar, (off_t)record_offset(keep)))
        return -errno;
    return cli_write_at(sidecar, header, sizeof header, 0);
}

static int cli_resume_record(int sidecar, uint64_t block, const uint8_t digest[CLI_DIGEST_BYTES])
{
    return cli_write_at(sidecar, digest, CLI_DIGEST_BYTES, record_offset(block));
}

/* 1: it belongs to a file of that size; 0: it does not, perhaps to one of *other_bytes; or -errno. */
static int is_ours(int sidecar, uint64_t size_bytes, uint64_t *other_bytes)
{
    uint8_t header[RESUME_HEADER + CLI_DIGEST_BYTES], expected[RESUME_HEADER];
    int64_t got = cli_read_at(sidecar, header, sizeof header, 0);
    if (got < 0)
        return (int)got;
    make_header(size_bytes, expected);
    if (got < RESUME_HEADER || memcmp(header, expected, HEADER_SIZE_AT) != 0)
        return 0;
    if (!memcmp(header, expected, sizeof expected))
        return 1;
    if (got == (int64_t)sizeof header) /* there is a record */
        *other_bytes = cli_get_u64(header + HEADER_SIZE_AT);
    return 0;
}

/* 1: the block is there, whole, and as its record says (digest has taken it in); 0: it is not; or -errno.
 */
static int check_block(int sidecar, int file, uint64_t index, uint8_t *block, struct cli_digest *digest,
                       uint8_t found[CLI_DIGEST_BYTES])
{
    uint8_t record[CLI_DIGEST_BYTES];
    int64_t got = cli_read_at(sidecar, record, sizeof record, record_offset(index));
    if (got < 0 || got < CLI_DIGEST_BYTES)
        return got < 0 ? (int)got : 0;
    got = cli_read_at(file, block, CLI_BLOCK_BYTES, index * CLI_BLOCK_BYTES);
    if (got < 0 || (size_t)got < CLI_BLOCK_BYTES)
        return got < 0 ? (int)got : 0;
    cli_digest_add(digest, block, CLI_BLOCK_BYTES);
    cli_digest_get(digest, found);
    return !memcmp(found, record, sizeof record);
}

/* Reads the unfinished file as far as its records agree with it, up to blocks_max; block holds
 * CLI_BLOCK_BYTES. `digest` has then taken in just those blocks. stopped() is asked after each block, and
 * true ends it with -EINTR. */
static int cli_resume_check(int sidecar, int file, uint64_t size_bytes, uint64_t blocks_max, uint8_t *block,
                            struct cli_digest *digest, int (*stopped)(void), struct cli_resume_point *point)
{
    uint64_t whole = size_bytes / CLI_BLOCK_BYTES, blocks = blocks_max < whole ? blocks_max : whole;
    struct cli_digest before;
    struct cli_resume_point reached = {0};
    int found = is_ours(sidecar, size_bytes, &reached.other_size_bytes);
    cli_digest_reset(digest);
    if (cli_digest_open(&before))
        return -ENOMEM;
    /* Ends at the end of the records or of the file, whichever comes first. */
    while (found == 1 && reached.blocks < blocks) {
        uint8_t here[CLI_DIGEST_BYTES];
        cli_digest_copy(&before, digest);
        found = stopped() ? -EINTR : check_block(sidecar, file, reached.blocks, block, digest, here);
        if (found != 1) {
            cli_digest_copy(digest, &before);
            break;
        }
        memcpy(reached.digest, here, sizeof here);
        reached.blocks++;
    }
    cli_digest_close(&before);
    if (found < 0)
        return found;
    *point = reached;
    return 0;
}

/* ---- disk space ------------------------------------------------------------------------------------ */

/*
 * Disk space for a file whose length is claimed ahead: checked at once, set aside as it
 * arrives.
 *
 * A peer that announces a length and sends nothing takes no space from others.
 */

/* Set aside ahead of what has arrived; long pieces keep the file in one place on disk. */
#define CLI_DISK_SPACE_STEP ((uint64_t)64 << 20)

#define STAT_BLOCK_BYTES 512u /* of st_blocks, on every file system */

/* Bytes that are free; 0 where it is unknown. */
static uint64_t cli_disk_space_free(int file)
{
    struct statvfs system;
    return fstatvfs(file, &system) ? 0 : system.f_bavail * system.f_frsize;
}

/* Whether the file system has room for a file of that length, counting what the file holds already. 0, or
 * -ENOSPC. 0 where it is unknown: writing fails then. */
static int cli_disk_space_check(int file, uint64_t size_bytes)
{
    struct statvfs system;
    struct stat status;
    /* Some network file systems report nothing. */
    if (fstatvfs(file, &system) || fstat(file, &status) || !system.f_blocks)
        return 0;
    uint64_t held = (uint64_t)status.st_blocks * STAT_BLOCK_BYTES;
    return size_bytes > held && size_bytes - held > system.f_bavail * system.f_frsize ? -ENOSPC : 0;
}

/* Sets space aside for bytes up to end_bytes, and a step more, of a file of size_bytes; *reserved_bytes: how
 * far that went already. 0, or -errno. 0 where the file system cannot: writing fails then. */
static int cli_disk_space_reserve(int file, uint64_t size_bytes, uint64_t end_bytes,
                                  uint64_t *reserved_bytes)
{
    assert(end_bytes <= size_bytes && size_bytes <= INT64_MAX);
    if (end_bytes <= *reserved_bytes)
        return 0;
    uint64_t rest = size_bytes - *reserved_bytes, needed = end_bytes - *reserved_bytes;
    uint64_t bytes = rest - needed < CLI_DISK_SPACE_STEP ? rest : needed + CLI_DISK_SPACE_STEP;
    int failed = fallocate(file, FALLOC_FL_KEEP_SIZE, (off_t)*reserved_bytes, (off_t)bytes) ? errno : 0;
    /* Not every file system can. */
    if (failed && failed != EOPNOTSUPP && failed != ENOSYS && failed != EINTR)
        return -failed;
    *reserved_bytes += bytes;
    return 0;
}

/* ---- partial --------------------------------------------------------------------------------------- */

#define NAME_BYTES (CLI_FILE_NAME_MAX + 1)
/* Opening can meet the very moment in which another process gives the name up; that cannot go on for long.
 */
#define OPEN_TRIES   16
#define PARTIAL_MODE 0600

static void temporary_name(const struct cli_partial *partial, const char *suffix, char out[NAME_BYTES])
{
    cli_file_name_unfinished(partial->name, suffix, out);
}

static bool give_reason(struct cli_partial *partial, const char *format, ...)
{
    va_list arguments;
    partial->fault = CLI_PARTIAL_OTHER;
    va_start(arguments, format);
    vsnprintf(partial->reason, sizeof partial->reason, format, arguments);
    va_end(arguments);
    return false;
}

static bool fail_by(struct cli_partial *partial, enum cli_partial_fault fault, const char *reason)
{
    give_reason(partial, "%s", reason);
    partial->fault = fault;
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
        return errno == ENOENT || system_failed(partial, "checking for a file of that name", errno);
    if (S_ISDIR(status.st_mode))
        return give_reason(partial, "a folder of that name exists");
    if (!partial->force)
        return fail_by(partial, CLI_PARTIAL_EXISTS, "a file of that name exists");
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

static bool blocked(struct cli_partial *partial, const char *obstacle, const char *name)
{
    return give_reason(partial, "%s is in the way (remove %s)", obstacle, name);
}

/* A process that was killed while it gave a file its final name leaves it with a second one. Whether a name
 * was removed: then the file is to be opened again. */
static bool drop_second_name(const struct cli_partial *partial, const char *name, const struct stat *opened)
{
    char fresh[NAME_BYTES];
    temporary_name(partial, CLI_COMMIT_SUFFIX, fresh);
    if (cli_still_named(partial->folder, fresh, opened))
        return !unlinkat(partial->folder, fresh, 0);
    return cli_still_named(partial->folder, partial->name, opened) && !unlinkat(partial->folder, name, 0);
}

/* 1: opened and locked; 0: it went away meanwhile; -errno, -EEXIST with an obstacle. */
static int open_locked(struct cli_partial *partial, const char *name, struct cli_owned_file *opened)
{
    struct stat status;
    int code = cli_owned_open(partial->folder, name, opened);
    if (code)
        return code == -ENOENT ? 0 : code;
    if (flock(opened->file, LOCK_EX | LOCK_NB) || fstat(opened->file, &status))
        code = -errno;
    else if (cli_still_named(partial->folder, name, &status) &&
             !(status.st_nlink > 1 && drop_second_name(partial, name, &status))) {
        opened->obstacle = cli_owned_obstacle(&status, opened->created);
        code = opened->obstacle ? -EEXIST : 1;
        partial->found_bytes = (uint64_t)status.st_size;
    }
    if (code != 1)
        close(opened->file);
    return code;
}

static bool open_file(struct cli_partial *partial, bool *created)
{
    char name[NAME_BYTES];
    struct cli_owned_file opened = {.file = -1};
    int code = 0;
    temporary_name(partial, CLI_PARTIAL_SUFFIX, name);
    for (int tries = 0; tries < OPEN_TRIES && !code; tries++)
        code = open_locked(partial, name, &opened);
    if (code == -EWOULDBLOCK)
        return fail_by(partial, CLI_PARTIAL_IN_USE, "another transfer to that name is in progress");
    if (code == -EEXIST)
        return blocked(partial, opened.obstacle, name);
    if (code != 1)
        return system_failed(partial, "creating the file", code ? -code : EBUSY);
    partial->file = opened.file;
    *created = opened.created;
    /* Older versions left it readable for others. Where there are no modes there is nothing to protect. */
    fchmod(partial->file, PARTIAL_MODE);
    return true;
}

/* Under the lock on the partial file. With a new partial file the records are new, too: a transfer whose
 * partial file was removed still writes the old ones. */
static bool open_sidecar(struct cli_partial *partial, bool fresh)
{
    char name[NAME_BYTES];
    struct stat status;
    struct cli_owned_file opened;
    temporary_name(partial, CLI_RESUME_SUFFIX, name);
    if (fresh && !fstatat(partial->folder, name, &status, AT_SYMLINK_NOFOLLOW) &&
        !cli_owned_obstacle(&status, false))
        unlinkat(partial->folder, name, 0);
    int code = cli_owned_open(partial->folder, name, &opened);
    if (!code && fstat(opened.file, &status))
        code = -errno;
    else if (!code)
        opened.obstacle = cli_owned_obstacle(&status, opened.created);
    if (!code && !opened.obstacle) {
        partial->sidecar = opened.file;
        fchmod(partial->sidecar, PARTIAL_MODE);
        return true;
    }
    if (opened.file >= 0)
        close(opened.file);
    return opened.obstacle ? blocked(partial, opened.obstacle, name)
                           : system_failed(partial, "creating the file", -code);
}

static bool open_both(struct cli_partial *partial)
{
    bool created = false;
    return open_file(partial, &created) && open_sidecar(partial, created);
}

/* doing: "writing the file"; bytes: that are still to find room. */
static bool no_space(struct cli_partial *partial, const char *doing, uint64_t bytes, int error)
{
    char needed[LH_FORMAT_MAX], free[LH_FORMAT_MAX];
    if (error != ENOSPC)
        return system_failed(partial, doing, error);
    lh_format_size(bytes, needed, sizeof needed);
    lh_format_size(cli_disk_space_free(partial->file), free, sizeof free);
    give_reason(partial, "%s failed: %s (%s needed, %s free)", doing, strerror(error), needed, free);
    partial->fault = CLI_PARTIAL_NO_SPACE;
    return false;
}

/* A disk that is too small is better found now than after an hour. Space is set aside as bytes come. */
static bool check_space(struct cli_partial *partial)
{
    if (partial->size_bytes > INT64_MAX)
        return give_reason(partial, "file size out of range");
    int code = cli_disk_space_check(partial->file, partial->size_bytes);
    return !code || no_space(partial, "allocating the file", partial->size_bytes, -code);
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
    cli_partial_abandon(partial, resume || !partial->started);
    return false;
}

bool cli_partial_check(struct cli_partial *partial, uint64_t blocks_max, uint8_t *block,
                       struct cli_digest *digest, int (*stopped)(void), struct cli_resume_point *point)
{
    int code = cli_resume_check(partial->sidecar, partial->file, partial->size_bytes, blocks_max, block,
                                digest, stopped, point);
    if (code)
        return system_failed(partial, "reading the unfinished file", -code);
    partial->blocks_recorded = point->blocks;
    return true;
}

bool cli_partial_start(struct cli_partial *partial, uint64_t blocks)
{
    /* Records first: they may cover less than the file holds, never more. */
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

static bool cli_partial_write(struct cli_partial *partial, uint64_t offset, const void *data, size_t bytes)
{
    int code = cli_disk_space_reserve(partial->file, partial->size_bytes, offset + bytes,
                                      &partial->reserved_bytes);
    if (code)
        return no_space(partial, "writing the file", partial->size_bytes - partial->reserved_bytes, -code);
    code = cli_write_at(partial->file, data, bytes, offset);
    if (code)
        return no_space(partial, "writing the file", partial->size_bytes - offset, -code);
    /* Starts the way to the disk now, so that little is left to do at the end. Only a hint. */
    sync_file_range(partial->file, (off_t)offset, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
    return true;
}

/* The file up to the end of that block has this digest. */
static bool cli_partial_record(struct cli_partial *partial, uint64_t block,
                               const uint8_t digest[CLI_DIGEST_BYTES])
{
    int code = cli_resume_record(partial->sidecar, block, digest);
    if (code)
        return system_failed(partial, "writing the file", -code);
    partial->blocks_recorded = block + 1;
    return true;
}

/* Bytes that end in the block they begin in. */
static bool append_piece(struct cli_partial *partial, struct cli_digest *digest, uint64_t offset,
                         const void *data, size_t bytes)
{
    uint8_t so_far[CLI_DIGEST_BYTES];
    cli_digest_add(digest, data, bytes);
    if (!cli_partial_write(partial, offset, data, bytes))
        return false;
    if ((offset + bytes) % CLI_BLOCK_BYTES)
        return true;
    cli_digest_get(digest, so_far);
    return cli_partial_record(partial, offset / CLI_BLOCK_BYTES, so_far);
}

bool cli_partial_append(struct cli_partial *partial, struct cli_digest *digest, uint64_t offset,
                        const void *data, size_t bytes)
{
    while (bytes) {
        size_t rest = CLI_BLOCK_BYTES - (size_t)(offset % CLI_BLOCK_BYTES);
        size_t piece = bytes < rest ? bytes : rest;
        if (!append_piece(partial, digest, offset, data, piece))
            return false;
        offset += piece;
        bytes -= piece;
        data = (const char *)data + piece;
    }
    return true;
}

/* False: the file system keeps no such thing. */
static bool set_attributes(const struct cli_partial *partial, mode_t mode, const struct timespec *written)
{
    struct stat status;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
    if (written)
        times[1] = *written;
    /* Owners who may not read or write keep that until the end: an unfinished file has to be opened again. */
    bool kept = !fchmod(partial->file, mode | PARTIAL_MODE) && !fstat(partial->file, &status) &&
                (status.st_mode & 07777) == (mode | PARTIAL_MODE);
    return !futimens(partial->file, times) && kept;
}

static bool take_final_name(struct cli_partial *partial)
{
    char from[NAME_BYTES], fresh[NAME_BYTES];
    temporary_name(partial, CLI_PARTIAL_SUFFIX, from);
    temporary_name(partial, CLI_COMMIT_SUFFIX, fresh);
    const struct cli_final_name names = {.folder = partial->folder,
                                         .file = partial->file,
                                         .partial = from,
                                         .fresh = fresh,
                                         .final = partial->name,
                                         .force = partial->force};
    int code = cli_final_name_take(&names);
    switch (-code) {
    case 0:
        return true;
    case EEXIST:
        return give_reason(partial, "a file of that name was created meanwhile");
    case ENOENT:
        return give_reason(partial, "the unfinished file was removed during the transfer");
    case ESTALE:
        return give_reason(partial, "the unfinished file was replaced during the transfer");
    default:
        return system_failed(partial, "renaming the file", -code);
    }
}

bool cli_partial_sync(struct cli_partial *partial)
{
    return !fsync(partial->file) || system_failed(partial, "writing the file to disk", errno);
}

bool cli_partial_commit(struct cli_partial *partial, mode_t mode, const struct timespec *written)
{
    char name[NAME_BYTES];
    if (ftruncate(partial->file, (off_t)partial->size_bytes))
        return system_failed(partial, "writing the file to disk", errno);
    partial->attributes_lost = !set_attributes(partial, mode, written);
    if (!cli_partial_sync(partial) || !take_final_name(partial))
        return false;
    fchmod(partial->file, mode);
    temporary_name(partial, CLI_RESUME_SUFFIX, name);
    cli_remove_own(partial->folder, name, partial->sidecar);
    /* The name itself; folders that cannot be synced (some network file systems) do it on their own. */
    fsync(partial->folder);
    close_both(partial);
    return true;
}

bool cli_partial_named(const struct cli_partial *partial)
{
    char name[NAME_BYTES], records[NAME_BYTES];
    struct stat file, sidecar;
    temporary_name(partial, CLI_PARTIAL_SUFFIX, name);
    temporary_name(partial, CLI_RESUME_SUFFIX, records);
    return !fstat(partial->file, &file) && !fstat(partial->sidecar, &sidecar) &&
           cli_still_named(partial->folder, name, &file) &&
           cli_still_named(partial->folder, records, &sidecar);
}

/* Whether there is data to resume: of this transfer, or, before it began, of an earlier one. */
static bool worth_keeping(const struct cli_partial *partial)
{
    struct stat file;
    if (partial->sidecar < 0 || fstat(partial->file, &file))
        return partial->found_bytes > 0;
    if (!cli_partial_named(partial))
        return false;
    return partial->started ? partial->blocks_recorded > 0 : file.st_size > 0;
}

/* As a resumption needs it, and without the preallocated space. */
static void trim(const struct cli_partial *partial)
{
    struct stat status;
    off_t bytes = (off_t)(partial->blocks_recorded * CLI_BLOCK_BYTES);
    if (!partial->started)
        bytes = fstat(partial->file, &status) ? bytes : status.st_size;
    fchmod(partial->file, PARTIAL_MODE);
    /* What cannot be given back now is when the transfer goes on. */
    if (ftruncate(partial->file, bytes))
        return;
}

uint64_t cli_partial_abandon(struct cli_partial *partial, bool keep)
{
    char name[NAME_BYTES], records[NAME_BYTES];
    if (partial->file < 0)
        return 0;
    temporary_name(partial, CLI_PARTIAL_SUFFIX, name);
    temporary_name(partial, CLI_RESUME_SUFFIX, records);
    keep = keep && worth_keeping(partial);
    if (keep) {
        trim(partial);
    } else {
        if (partial->sidecar >= 0)
            cli_remove_own(partial->folder, records, partial->sidecar);
        cli_remove_own(partial->folder, name, partial->file);
    }
    close_both(partial);
    return keep ? partial->blocks_recorded * CLI_BLOCK_BYTES : 0;
}
