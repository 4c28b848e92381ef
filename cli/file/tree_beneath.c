/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/tree_beneath.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "cli/file/file_names.h"
#include "cli/file/tree_records.h"

/* ---- opening --------------------------------------------------------------------------------------- */

/* A folder between: never a link (O_DIRECTORY makes one an error), never read. */
static int enter(int folder, const char *name)
{
    int inside = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return inside < 0 ? -errno : inside;
}

int cli_beneath_walk(int root, const char *path, int flags, mode_t mode)
{
    char name[CLI_FILE_NAME_MAX + 1];
    int folder = root, opened;
    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) { /* each name of the path */
        size_t bytes = (size_t)(slash - path);
        assert(bytes <= CLI_FILE_NAME_MAX);
        memcpy(name, path, bytes);
        name[bytes] = 0;
        opened = enter(folder, name);
        if (folder != root)
            close(folder);
        if (opened < 0)
            return opened;
        folder = opened;
    }
    opened = openat(folder, *path ? path : ".", flags | O_NOFOLLOW | O_CLOEXEC, mode);
    opened = opened < 0 ? -errno : opened;
    if (folder != root)
        close(folder);
    return opened;
}

int cli_beneath_open(int root, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (unsigned)(flags | O_NOFOLLOW | O_CLOEXEC),
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    };
    long opened = syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof how);
    if (opened >= 0)
        return (int)opened;
    /* Kernels before 5.6, filters of containers, and renames meanwhile (EAGAIN). */
    if (errno == ENOSYS || errno == EPERM || errno == EAGAIN)
        return cli_beneath_walk(root, path, flags, mode);
    return -errno;
}

/* ---- parent ---------------------------------------------------------------------------------------- */

void cli_beneath_close(struct cli_beneath *beneath)
{
    if (beneath->folder >= 0)
        close(beneath->folder);
    beneath->folder = -1;
}

int cli_beneath_parent(struct cli_beneath *beneath, const char *path, size_t bytes)
{
    const char *slash = memrchr(path, '/', bytes);
    size_t before = slash ? (size_t)(slash - path) : 0, name = slash ? bytes - before - 1 : bytes;
    assert(bytes <= CLI_TREE_PATH_MAX && name > 0 && name <= CLI_FILE_NAME_MAX);
    memcpy(beneath->name, path + bytes - name, name);
    beneath->name[name] = 0;
    if (beneath->folder >= 0 && strlen(beneath->path) == before && !memcmp(beneath->path, path, before))
        return beneath->folder;
    cli_beneath_close(beneath);
    memcpy(beneath->path, path, before);
    beneath->path[before] = 0;
    int opened = cli_beneath_open(beneath->root, beneath->path, O_PATH | O_DIRECTORY, 0);
    if (opened >= 0)
        beneath->folder = opened;
    return opened;
}
