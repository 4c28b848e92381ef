/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/file_names.h"

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

#include "cli/file/file_blocks.h"
#include "cli/terminal/terminal.h"

/* ---- name ------------------------------------------------------------------------------------------ */

/* The longest NAME of which .NAME and each suffix still are a name. */
#define PLAIN_MAX (CLI_FILE_NAME_MAX - sizeof CLI_PARTIAL_SUFFIX)
/* Of a longer NAME: enough to tell it by; messages that name the file stay whole. */
#define BEGINNING_MAX 80

_Static_assert(sizeof CLI_PARTIAL_SUFFIX >= sizeof CLI_RESUME_SUFFIX &&
                   sizeof CLI_PARTIAL_SUFFIX >= sizeof CLI_COMMIT_SUFFIX,
               "the longest suffix");
_Static_assert(1 + BEGINNING_MAX + CLI_DIGEST_TEXT_MAX + sizeof CLI_PARTIAL_SUFFIX <= CLI_FILE_NAME_MAX,
               "a shortened name is a name");

static bool ends_with(const char *name, size_t bytes, const char *suffix)
{
    size_t length = strlen(suffix);
    return bytes >= length && !memcmp(name + bytes - length, suffix, length);
}

/* Bytes of the characters that fit that many; of a name that is no text, so many bytes. */
static size_t beginning(const char *name, size_t maximum)
{
    size_t used = 0;
    while (used < maximum) {
        size_t character = cli_utf8_bytes(name + used, strlen(name + used));
        if (!character)
            return maximum;
        if (used + character > maximum)
            break;
        used += character;
    }
    return used;
}

char *cli_file_name_unfinished(const char *name, const char *suffix, char out[CLI_FILE_NAME_MAX + 1])
{
    uint8_t digest[CLI_DIGEST_BYTES];
    char text[CLI_DIGEST_TEXT_MAX];
    if (strlen(name) <= PLAIN_MAX) {
        snprintf(out, CLI_FILE_NAME_MAX + 1, ".%s%s", name, suffix);
        return out;
    }
    cli_digest_of(name, strlen(name), digest);
    snprintf(out, CLI_FILE_NAME_MAX + 1, ".%.*s-%s%s", (int)beginning(name, BEGINNING_MAX), name,
             cli_digest_text(digest, text), suffix);
    return out;
}

/* It could be the half of another transfer. */
bool cli_file_name_reserved(const char *name, size_t bytes)
{
    return ends_with(name, bytes, CLI_PARTIAL_SUFFIX) || ends_with(name, bytes, CLI_RESUME_SUFFIX) ||
           ends_with(name, bytes, CLI_COMMIT_SUFFIX);
}

const char *cli_file_name_wrong(const char *name, size_t bytes)
{
    if (!bytes)
        return "is empty";
    if (bytes > CLI_FILE_NAME_MAX)
        return "is longer than 255 bytes";
    if (memchr(name, '/', bytes))
        return "contains a slash";
    if ((bytes == 1 && name[0] == '.') || (bytes == 2 && name[0] == '.' && name[1] == '.'))
        return "is a folder, . or ..";
    if (!cli_text_is_clean(name, bytes))
        return "contains a control character";
    if (cli_file_name_reserved(name, bytes))
        return "is reserved for unfinished files";
    return NULL;
}

/* ---- owned file ------------------------------------------------------------------------------------ */

const char *cli_owned_obstacle(const struct stat *status, bool created)
{
    if (S_ISLNK(status->st_mode))
        return "a symbolic link";
    if (S_ISDIR(status->st_mode))
        return "a folder";
    if (!S_ISREG(status->st_mode))
        return "a pipe, socket or device";
    /* Some file systems give what is created to others than its creator: vfat, NFS with root squashed. */
    if (!created && status->st_uid != geteuid())
        return "a file of another user";
    return status->st_nlink > 1 ? "a file with hard links" : NULL;
}

/* Hard links are the caller's to look at: a transfer that is just ending has one. */
static const char *obstacle_before_links(struct stat status)
{
    status.st_nlink = 1;
    return cli_owned_obstacle(&status, false);
}

static int open_existing(int folder, const char *name, struct cli_owned_file *opened)
{
    struct stat status;
    /* Looked at first: opening a device can have effects. */
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW))
        return -errno;
    opened->obstacle = obstacle_before_links(status);
    if (opened->obstacle)
        return -EEXIST;
    opened->file = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (opened->file < 0)
        return -errno;
    int code = fstat(opened->file, &status) ? -errno : 0;
    if (!code)
        opened->obstacle = obstacle_before_links(status);
    if (code || opened->obstacle) {
        close(opened->file);
        opened->file = -1;
        return code ? code : -EEXIST;
    }
    return 0;
}

int cli_owned_open(int folder, const char *name, struct cli_owned_file *opened)
{
    *opened = (struct cli_owned_file){.file = -1};
    opened->file = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    opened->created = opened->file >= 0;
    if (opened->created)
        return 0;
    return errno == EEXIST ? open_existing(folder, name, opened) : -errno;
}

bool cli_still_named(int folder, const char *name, const struct stat *opened)
{
    struct stat named;
    return !fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) && named.st_ino == opened->st_ino &&
           named.st_dev == opened->st_dev;
}

void cli_remove_own(int folder, const char *name, int file)
{
    struct stat opened;
    if (!fstat(file, &opened) && cli_still_named(folder, name, &opened))
        unlinkat(folder, name, 0);
}

/* ---- final name ------------------------------------------------------------------------------------ */

static int link_to(const struct cli_final_name *names, const char *name)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", names->file);
    return linkat(AT_FDCWD, path, names->folder, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

int cli_file_rename(int folder, const char *from, const char *to, bool force)
{
    struct stat status;
    if (!force) {
        if (!renameat2(folder, from, folder, to, RENAME_NOREPLACE))
            return 0;
        if (errno != EINVAL && errno != ENOSYS)
            return -errno;
        /* A file system without that: look, then rename. */
        if (!fstatat(folder, to, &status, AT_SYMLINK_NOFOLLOW))
            return -EEXIST;
    }
    return renameat(folder, from, folder, to) ? -errno : 0;
}

static int rename_checked(const struct cli_final_name *names, const struct stat *opened)
{
    if (!cli_still_named(names->folder, names->partial, opened))
        return -ESTALE;
    int code = cli_file_rename(names->folder, names->partial, names->final, names->force);
    if (code || cli_still_named(names->folder, names->final, opened))
        return code;
    /* Another transfer's file took the name since it was compared: it must not stay under the final name. */
    cli_file_rename(names->folder, names->final, names->partial, false);
    return -ESTALE;
}

/* The fresh name becomes the final one, and replaces what is there. */
static int replace(const struct cli_final_name *names, const struct stat *opened)
{
    int code = -ESTALE;
    if (cli_still_named(names->folder, names->fresh, opened))
        code = cli_file_rename(names->folder, names->fresh, names->final, true);
    if (code)
        cli_remove_own(names->folder, names->fresh, names->file);
    return code;
}

int cli_final_name_take(const struct cli_final_name *names)
{
    struct stat opened;
    int code = link_to(names, names->force ? names->fresh : names->final);
    /* A process that was killed leaves the fresh name behind. */
    if (code == -EEXIST && names->force && !unlinkat(names->folder, names->fresh, 0))
        code = link_to(names, names->fresh);
    if (code == -EEXIST && !names->force)
        return code;
    if (fstat(names->file, &opened))
        return -errno;
    /* Some FUSE file systems count no links at all. */
    if (!opened.st_nlink && !cli_still_named(names->folder, names->partial, &opened))
        return -ENOENT;
    if (code)
        return rename_checked(names, &opened);
    if (names->force)
        code = replace(names, &opened);
    if (!code && !cli_still_named(names->folder, names->final, &opened))
        code = -ESTALE;
    if (!code)
        cli_remove_own(names->folder, names->partial, names->file);
    return code;
}

/* ---- whole io -------------------------------------------------------------------------------------- */

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

/* ---- output folder --------------------------------------------------------------------------------- */

bool cli_output_folder_open(const char *what, const char *path, int *folder,
                            char reason[CLI_OUTPUT_FOLDER_REASON_MAX])
{
    if (!*path) {
        snprintf(reason, CLI_OUTPUT_FOLDER_REASON_MAX, "%s: empty (example: %s .)", what, what);
        return false;
    }
    int opened = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0) {
        snprintf(reason, CLI_OUTPUT_FOLDER_REASON_MAX, "%s %s: %s%s", what, path, strerror(errno),
                 errno == ENOENT ? " (create the folder first)" : "");
        return false;
    }
    if (faccessat(opened, ".", W_OK | X_OK, AT_EACCESS)) {
        snprintf(reason, CLI_OUTPUT_FOLDER_REASON_MAX, "%s %s: not writable: %s", what, path,
                 strerror(errno));
        close(opened);
        return false;
    }
    *folder = opened;
    return true;
}

mode_t cli_umask(void)
{
    mode_t mask = umask(077);
    umask(mask);
    return mask;
}

/* ---- source ---------------------------------------------------------------------------------------- */

static bool source_failed(struct cli_source *source, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool source_failed(struct cli_source *source, const char *format, ...)
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
        return source_failed(source, "is %s (only regular files can be sent%s)", kind_of(status->st_mode),
                             S_ISDIR(status->st_mode) ? "; a folder as an archive: tar"
                                                      : "; write it to a file first");
    const char *wrong = cli_file_name_wrong(source->name, strlen(source->name));
    if (wrong)
        return source_failed(source, "cannot be sent: the name %s", wrong);
    source->size_bytes = (uint64_t)status->st_size;
    source->mode = status->st_mode & 0777;
    source->written = status->st_mtim;
    /* Those of /proc and /sys report a size of 0. */
    char first;
    if (!source->size_bytes && cli_read_at(source->file, &first, 1, 0) > 0)
        return source_failed(source, "has no known size (send a copy)");
    return true;
}

bool cli_source_open(struct cli_source *source, const char *path)
{
    struct stat status;
    const char *slash = strrchr(path, '/');
    *source = (struct cli_source){.path = path, .name = slash ? slash + 1 : path, .file = -1};
    if (!strcmp(path, "-"))
        return source_failed(
            source, "cannot be sent: standard input has no size (write it to a file first; a file of "
                    "that name: ./-)");
    /* Not blocking: a pipe without a writer would keep us here. */
    source->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (source->file < 0)
        return source_failed(source, "cannot be opened: %s", strerror(errno));
    if (fstat(source->file, &status)) {
        source_failed(source, "cannot be read: %s", strerror(errno));
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
        return source_failed(source, "cannot be read: %s", strerror((int)-got));
    if ((uint64_t)got < bytes)
        return source_failed(source, "shrank during the transfer");
    return true;
}

bool cli_source_unchanged(struct cli_source *source)
{
    struct stat status;
    if (fstat(source->file, &status))
        return source_failed(source, "cannot be read: %s", strerror(errno));
    if ((uint64_t)status.st_size == source->size_bytes && status.st_mtim.tv_sec == source->written.tv_sec &&
        status.st_mtim.tv_nsec == source->written.tv_nsec)
        return true;
    return source_failed(source, "changed during the transfer");
}
