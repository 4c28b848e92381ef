/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/disk_space.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define STAT_BLOCK_BYTES 512u /* of st_blocks, on every file system */

uint64_t cli_disk_space_free(int file)
{
    struct statvfs system;
    return fstatvfs(file, &system) ? 0 : system.f_bavail * system.f_frsize;
}

int cli_disk_space_check(int file, uint64_t size_bytes)
{
    struct statvfs system;
    struct stat status;
    /* Some network file systems report nothing. */
    if (fstatvfs(file, &system) || fstat(file, &status) || !system.f_blocks)
        return 0;
    uint64_t held = (uint64_t)status.st_blocks * STAT_BLOCK_BYTES;
    return size_bytes > held && size_bytes - held > system.f_bavail * system.f_frsize ? -ENOSPC : 0;
}

int cli_disk_space_reserve(int file, uint64_t size_bytes, uint64_t end_bytes, uint64_t *reserved_bytes)
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
