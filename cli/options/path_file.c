/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/path_file.h"

#include "cli/terminal/diagnostic.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of the library's files (history/path_history.h); it writes over no other. */
#define BEGINNING "# paths of longhaul"

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

static const char *default_file(void)
{
    static char file[PATH_MAX];
    char cache[PATH_MAX], folder[PATH_MAX];
    if (!cache_folder(cache) || !join(folder, cache, "longhaul") || !join(file, folder, "paths"))
        return NULL;
    /* What cannot be created is found out where the file cannot be written, which is no error. */
    (void)mkdir(cache, 0700);
    (void)mkdir(folder, 0700);
    return file;
}

/* Whether the library would leave the file alone, as it is not one of its own. */
static bool is_foreign(const char *file)
{
    struct stat status;
    char text[sizeof BEGINNING - 1];
    if (stat(file, &status) || (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)))
        return false; /* there is none, or no file of anybody's; it is no error */
    int fd = S_ISREG(status.st_mode) ? open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    ssize_t bytes = fd >= 0 ? read(fd, text, sizeof text) : -1;
    if (fd >= 0)
        close(fd);
    return bytes != 0 && (bytes != (ssize_t)sizeof text || memcmp(text, BEGINNING, sizeof text));
}

int cli_path_file(const char *given, const char **file)
{
    *file = given ? given : default_file();
    if (!given)
        return CLI_PROCEED;
    if (!strcmp(given, "none"))
        *file = NULL;
    else if (is_foreign(given))
        return cli_misused("--path-file %s: not a file of remembered paths (name a new file, or none)",
                           given);
    return CLI_PROCEED;
}
