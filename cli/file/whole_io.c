/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/whole_io.h"

#include <errno.h>
#include <unistd.h>

int64_t cli_read_at(int file, void *data, size_t bytes, uint64_t offset)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t got = pread(file, (char *)data + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (!got)
            break;
        done += (size_t)got;
    }
    return (int64_t)done;
}

int cli_write_at(int file, const void *data, size_t bytes, uint64_t offset)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t put = pwrite(file, (const char *)data + done, bytes - done, (off_t)(offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return put ? -errno : -EIO;
        done += (size_t)put;
    }
    return 0;
}
