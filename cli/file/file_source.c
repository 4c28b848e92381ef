/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/file_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "cli/file/file_names.h"

static bool give_reason(struct cli_source *source, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool give_reason(struct cli_source *source, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(source->reason, sizeof source->reason, format, arguments);
    va_end(arguments);
    return false;
}

static const char *kind_of(mode_t mode)
{
    if (S_ISDIR(mode))
        return "a folder";
    if (S_ISFIFO(mode))
        return "a pipe";
    return S_ISSOCK(mode) ? "a socket" : "a device";
}

static bool check_status(struct cli_source *source, const struct stat *status)
{
    if (!S_ISREG(status->st_mode))
        return give_reason(source, "is %s (only regular files can be sent%s)", kind_of(status->st_mode),
                           S_ISDIR(status->st_mode) ? "; a folder as an archive: tar"
                                                    : "; write it to a file first");
    const char *wrong = cli_file_name_wrong(source->name, strlen(source->name));
    if (wrong)
        return give_reason(source, "cannot be sent: the name %s", wrong);
    source->size_bytes = (uint64_t)status->st_size;
    source->mode = status->st_mode & 0777;
    source->written = status->st_mtim;
    /* Those of /proc and /sys report a size of 0. */
    char first;
    if (!source->size_bytes && cli_read_at(source->file, &first, 1, 0) > 0)
        return give_reason(source, "has no known size (send a copy)");
    return true;
}

bool cli_source_open(struct cli_source *source, const char *path)
{
    struct stat status;
    const char *slash = strrchr(path, '/');
    *source = (struct cli_source){.path = path, .name = slash ? slash + 1 : path, .file = -1};
    if (!strcmp(path, "-"))
        return give_reason(
            source, "cannot be sent: standard input has no size (write it to a file first; a file of "
                    "that name: ./-)");
    /* Not blocking: a pipe without a writer would keep us here. */
    source->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (source->file < 0)
        return give_reason(source, "cannot be opened: %s", strerror(errno));
    if (fstat(source->file, &status)) {
        give_reason(source, "cannot be read: %s", strerror(errno));
    } else if (check_status(source, &status)) {
        posix_fadvise(source->file, 0, 0, POSIX_FADV_SEQUENTIAL);
        return true;
    }
    cli_source_close(source);
    return false;
}

void cli_source_close(struct cli_source *source)
{
    if (source->file >= 0)
        close(source->file);
    source->file = -1;
}

bool cli_source_read(struct cli_source *source, uint64_t offset, void *data, size_t bytes)
{
    int64_t got = cli_read_at(source->file, data, bytes, offset);
    if (got < 0)
        return give_reason(source, "cannot be read: %s", strerror((int)-got));
    if ((uint64_t)got < bytes)
        return give_reason(source, "shrank during the transfer");
    return true;
}

bool cli_source_unchanged(struct cli_source *source)
{
    struct stat status;
    if (fstat(source->file, &status))
        return give_reason(source, "cannot be read: %s", strerror(errno));
    if ((uint64_t)status.st_size == source->size_bytes && status.st_mtim.tv_sec == source->written.tv_sec &&
        status.st_mtim.tv_nsec == source->written.tv_nsec)
        return true;
    return give_reason(source, "changed during the transfer");
}
