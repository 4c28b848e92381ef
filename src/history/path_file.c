/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "history/path_file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

_Static_assert(PATH_HISTORY_ADDRESS_MAX == INET6_ADDRSTRLEN, "a record holds any address");

void path_file_address(char out[PATH_HISTORY_ADDRESS_MAX], uint8_t family, const uint8_t address[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    bool is_mapped = family == 6 && memcmp(address, mapped, sizeof mapped) == 0;
    out[0] = 0;
    inet_ntop(family == 4 || is_mapped ? AF_INET : AF_INET6, is_mapped ? address + sizeof mapped : address,
              out, PATH_HISTORY_ADDRESS_MAX);
}

/* What is written before it takes the file's name, for mkostemp(): not made of that, which may be as long as
 * names are. */
#define BESIDE ".longhaul-paths.XXXXXX"

static uint64_t wall_clock_s(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec > 0 ? (uint64_t)now.tv_sec : 0;
}

/* ---- reading ----------------------------------------------------------------------------------------- */

/* A regular file only: a pipe or a device could block. */
static int open_regular(const char *file)
{
    struct stat status;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

/* Bytes read, at most `size`. */
static size_t read_up_to(int fd, char *text, size_t size)
{
    size_t have = 0;
    while (have < size) { /* each turn reads something, or is the last */
        ssize_t got = read(fd, text + have, size - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        have += (size_t)got;
    }
    return have;
}

/* A history and its text: too much for the stack of a thread. */
struct content {
    struct path_history history;
    bool is_ours; /* what was read may be replaced; also where nothing was */
    char text[PATH_HISTORY_TEXT_MAX];
};

/* Empty where there is no file. NULL: no memory. To be freed. */
static struct content *read_content(const char *file)
{
    struct content *content = calloc(1, sizeof *content);
    int fd = content ? open_regular(file) : -1;
    if (content)
        content->is_ours = fd >= 0 || errno == ENOENT;
    if (fd >= 0) {
        size_t bytes = read_up_to(fd, content->text, sizeof content->text);
        path_history_parse(content->text, bytes, &content->history);
        content->is_ours = path_history_is_text(content->text, bytes);
        close(fd);
    }
    return content;
}

bool path_file_read(const char *file, const char *peer, const char *local, struct path_record *record,
                    lh_time *age_ns)
{
    struct content *content = read_content(file);
    if (!content)
        return false;
    uint64_t now_s = wall_clock_s();
    const struct path_record *found = path_history_find(&content->history, peer, local, now_s);
    if (found) {
        *record = *found;
        *age_ns = (now_s - found->time_s) * LH_NS_PER_S;
    }
    free(content);
    return found != NULL;
}

/* ---- writing ----------------------------------------------------------------------------------------- */

static bool write_all(int fd, const char *text, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t put = write(fd, text + done, bytes - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}

/* As the file that it replaces. */
static bool take_attributes(int fd, const struct stat *old)
{
    struct stat fresh;
    if (fstat(fd, &fresh) != 0)
        return false;
    bool same_owner = fresh.st_uid == old->st_uid && fresh.st_gid == old->st_gid;
    return (same_owner || fchown(fd, old->st_uid, old->st_gid) == 0) &&
           fchmod(fd, old->st_mode & 0777) == 0;
}

/* Beside the file, where rename() replaces it at once. rename() would replace a link, a pipe or a device as
 * well. */
static bool replace(const char *file, const char *text, size_t bytes)
{
    char beside[PATH_FILE_NAME_MAX + sizeof BESIDE];
    struct stat old;
    bool exists = lstat(file, &old) == 0;
    if (strlen(file) >= PATH_FILE_NAME_MAX || (exists ? !S_ISREG(old.st_mode) : errno != ENOENT))
        return false;
    const char *slash = strrchr(file, '/');
    snprintf(beside, sizeof beside, "%.*s" BESIDE, slash ? (int)(slash + 1 - file) : 0, file);
    int fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0)
        return false;
    bool whole = write_all(fd, text, bytes) && (!exists || take_attributes(fd, &old));
    whole = close(fd) == 0 && whole;
    if (whole && rename(beside, file) == 0)
        return true;
    unlink(beside);
    return false;
}

/* To the end of links; those that end nowhere stay, and replace() refuses them. */
static bool replace_linked(const char *file, const char *text, size_t bytes)
{
    char *end = realpath(file, NULL);
    bool replaced = replace(end ? end : file, text, bytes);
    free(end);
    return replaced;
}

bool path_file_write(const char *file, const struct path_record *record)
{
    struct content *content = read_content(file);
    if (!content)
        return false;
    struct path_record dated = *record;
    dated.time_s = wall_clock_s();
    bool written =
        content->is_ours && path_history_put(&content->history, &dated) &&
        replace_linked(file, content->text, path_history_format(&content->history, content->text));
    free(content);
    return written;
}
