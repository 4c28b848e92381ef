/*
 * disk.c - preloaded: a disk that is slow or fails. $LH_TEST_DISK_WAITS: a file; writes of blocks wait until
 * it exists. $LH_TEST_DISK_FAILS: "read", from the ninth block of 4 MiB on; "sync", what was written is not
 * on disk; "times", files keep no time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BLOCK      ((size_t)1 << 20) /* and above */
#define UNREADABLE ((off_t)32 << 20)

static bool fails(const char *what)
{
    const char *set = getenv("LH_TEST_DISK_FAILS");
    bool failed = set && !strcmp(set, what);
    if (failed)
        errno = EIO;
    return failed;
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    typedef ssize_t pwrite_function(int, const void *, size_t, off_t);
    pwrite_function *next = (pwrite_function *)dlsym(RTLD_NEXT, "pwrite");
    const char *until = getenv("LH_TEST_DISK_WAITS");
    while (until && bytes >= BLOCK && access(until, F_OK))
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return next(fd, data, bytes, offset);
}

ssize_t pread(int fd, void *data, size_t bytes, off_t offset)
{
    typedef ssize_t pread_function(int, void *, size_t, off_t);
    pread_function *next = (pread_function *)dlsym(RTLD_NEXT, "pread");
    return offset >= UNREADABLE && fails("read") ? -1 : next(fd, data, bytes, offset);
}

int fsync(int fd)
{
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return fails("sync") ? -1 : next(fd);
}

int futimens(int fd, const struct timespec times[2])
{
    typedef int futimens_function(int, const struct timespec *);
    futimens_function *next = (futimens_function *)dlsym(RTLD_NEXT, "futimens");
    return fails("times") ? -1 : next(fd, times);
}
