/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/final_name.h"

#include "cli/file/owned_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int link_to(const struct cli_final_name *names, const char *name)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", names->file);
    return linkat(AT_FDCWD, path, names->folder, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* Without force the new name must be free. */
static int rename_to(int folder, const char *from, const char *to, bool force)
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
    int code = rename_to(names->folder, names->partial, names->final, names->force);
    if (code || cli_still_named(names->folder, names->final, opened))
        return code;
    /* Another transfer's file took the name since it was compared: it must not stay under the final name. */
    rename_to(names->folder, names->final, names->partial, false);
    return -ESTALE;
}

/* The fresh name becomes the final one, and replaces what is there. */
static int replace(const struct cli_final_name *names, const struct stat *opened)
{
    int code = -ESTALE;
    if (cli_still_named(names->folder, names->fresh, opened))
        code = rename_to(names->folder, names->fresh, names->final, true);
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
