/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/results/folder.h"

#include "cli/results/result_file.h"
#include "cli/terminal/diagnostic.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of cli_folder_mark(). */
#define MARK ".longhaul-results"

static int make_one(const char *what, const char *path)
{
    struct stat found;
    if (!mkdir(path, 0777))
        return CLI_PROCEED;
    int error = errno;
    if (error == EEXIST && !stat(path, &found) && S_ISDIR(found.st_mode))
        return CLI_PROCEED;
    return cli_failed("%s%s: %s", what, path, strerror(error == EEXIST ? ENOTDIR : error));
}

int cli_folder_make(struct cli_folder *folder, const char *what, const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (!length || length >= sizeof folder->path - 64)
        return cli_misused("%s%s: invalid path", what, path);
    snprintf(folder->path, sizeof folder->path, "%.*s", (int)length, path);
    for (size_t i = 1; i < length; i++)
        if (folder->path[i] == '/') {
            folder->path[i] = 0;
            int status = make_one(what, folder->path);
            folder->path[i] = '/';
            if (status != CLI_PROCEED)
                return status;
        }
    return make_one(what, folder->path);
}

char *cli_folder_name(const char *text, char *out)
{
    snprintf(out, CLI_FOLDER_NAME_MAX, "%s", text);
    for (char *at = out; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("=.,-_+%", *at))
            *at = '_';
    return out;
}

int cli_folder_make_in(struct cli_folder *folder, const struct cli_folder *above, const char *name)
{
    char path[PATH_MAX + NAME_MAX + 2], own[CLI_FOLDER_NAME_MAX];
    snprintf(path, sizeof path, "%s/%s", above->path, cli_folder_name(name, own));
    return cli_folder_make(folder, "--output ", path);
}

int cli_folder_check(const struct cli_folder *folder)
{
    if (!access(folder->path, W_OK | X_OK))
        return CLI_PROCEED;
    return cli_failed("--output %s: %s", folder->path, strerror(errno));
}

static void join(char *out, size_t size, const struct cli_folder *folder, const char *name)
{
    snprintf(out, size, "%s/%s", folder->path, name);
}

bool cli_folder_is_marked(const struct cli_folder *folder)
{
    char path[PATH_MAX + NAME_MAX + 2];
    struct stat found;
    join(path, sizeof path, folder, MARK);
    return !lstat(path, &found) && S_ISREG(found.st_mode);
}

int cli_folder_mark(const struct cli_folder *folder)
{
    FILE *file = cli_folder_is_marked(folder) ? NULL : cli_folder_open(folder, MARK);
    if (!file)
        return cli_folder_is_marked(folder) ? CLI_PROCEED : CLI_EXIT_FAILED;
    fputs("Results of longhaul: the next run replaces and removes the files of its names in this folder.\n",
          file);
    return cli_folder_close(folder, MARK, file);
}

void cli_folder_unmark(const struct cli_folder *folder)
{
    cli_folder_remove(folder, MARK);
}

int cli_folder_vacant(const struct cli_folder *folder, const char *what, const char *name)
{
    char path[PATH_MAX + NAME_MAX + 2];
    struct stat found;
    join(path, sizeof path, folder, name);
    if (lstat(path, &found))
        return CLI_PROCEED;
    return cli_misused(
        "%s%s: not a folder of results, and contains %s (name another folder, or remove that)", what,
        folder->path, name);
}

FILE *cli_folder_open(const struct cli_folder *folder, const char *name)
{
    char path[PATH_MAX + NAME_MAX + 2];
    join(path, sizeof path, folder, name);
    return cli_result_open("", path);
}

int cli_folder_close(const struct cli_folder *folder, const char *name, FILE *file)
{
    char path[PATH_MAX + NAME_MAX + 2];
    join(path, sizeof path, folder, name);
    return cli_result_close("", path, file);
}

void cli_folder_remove(const struct cli_folder *folder, const char *name)
{
    char path[PATH_MAX + NAME_MAX + 2];
    struct stat found;
    join(path, sizeof path, folder, name);
    if (!lstat(path, &found) && S_ISREG(found.st_mode))
        unlink(path);
}
