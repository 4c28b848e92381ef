/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/owned_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

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
