/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/path_file.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* False: too long. */
static bool join(char out[PATH_MAX], const char *folder, const char *name)
{
    int bytes = snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return bytes > 0 && bytes < PATH_MAX;
}

/* The XDG Base Directory Specification: paths that are not absolute are ignored. */
static bool cache_folder(char out[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache == '/')
        return snprintf(out, PATH_MAX, "%s", cache) < PATH_MAX;
    return home && *home == '/' && join(out, home, ".cache");
}

const char *cli_path_file(const char *given)
{
    static char file[PATH_MAX];
    char cache[PATH_MAX], folder[PATH_MAX];
    if (given)
        return strcmp(given, "none") != 0 ? given : NULL;
    if (!cache_folder(cache) || !join(folder, cache, "longhaul") || !join(file, folder, "paths"))
        return NULL;
    /* What cannot be created is found out where the file cannot be written, which is no error. */
    (void)mkdir(cache, 0700);
    (void)mkdir(folder, 0700);
    return file;
}
