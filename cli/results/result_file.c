/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/results/result_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/terminal/terminal.h"

/* ---- result file ----------------------------------------------------------------------------------- */

/* Of files that take the place's name; a process killed that often did not clean up. */
#define TRIES_MAX 1000

/* What follows the name of a file while it is written: ".PID-TRY.part". */
#define PART_MAX 32

/* A file that is being written. */
struct result {
    struct result *before; /* opened before this one */
    FILE *file;
    char *target; /* what it is to be: the file at the end of links. NULL: written to directly */
    char place[PATH_MAX + PART_MAX]; /* where it is until then */
};

static struct result *opened; /* the last one; the one that a signal removes */

static void forget(struct result *result)
{
    for (struct result **at = &opened; *at; at = &(*at)->before)
        if (*at == result) {
            *at = result->before;
            break;
        }
    cli_stop_removes(opened && opened->target ? opened->place : NULL);
    free(result->target);
    free(result);
}

static void remember(struct result *result)
{
    result->before = opened;
    opened = result;
    cli_stop_removes(result->target ? result->place : NULL);
}

static struct result *result_of(const FILE *file)
{
    struct result *result = opened;
    while (result->file != file)
        result = result->before;
    return result;
}

/* ---- the place ---------------------------------------------------------------------------------------- */

/* Only a file of ours that has one name may be exchanged for another: links to it would miss what is new, and
 * its owner would change. Pipes and devices are no files at all. */
static bool is_exchangeable(const struct stat *found)
{
    return S_ISREG(found->st_mode) && found->st_nlink == 1 && found->st_uid == geteuid();
}

/* Beside the target, so that it can be renamed. A long name is cut. */
static void name_place(struct result *result, unsigned try)
{
    const char *slash = strrchr(result->target, '/'), *name = slash ? slash + 1 : result->target;
    int kept = (int)strnlen(name, NAME_MAX - PART_MAX);
    if (try)
        snprintf(result->place, sizeof result->place, "%.*s%.*s.%ld-%u.part", (int)(name - result->target),
                 result->target, kept, name, (long)getpid(), try);
    else
        snprintf(result->place, sizeof result->place, "%.*s%.*s.%ld.part", (int)(name - result->target),
                 result->target, kept, name, (long)getpid());
}

/* A new file in the place, never one that was there, nor through a link. -1 with errno. */
static int create_place(struct result *result)
{
    int file = -1;
    for (unsigned try = 0; file < 0 && try < TRIES_MAX; try++) {
        name_place(result, try);
        file = open(result->place, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST)
            break;
    }
    return file;
}

/* Of the file that is exchanged, or of a new one. Signals wait until they know what to remove. */
static int open_beside(struct result *result, const struct stat *exchanged)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int file = create_place(result);
    if (file >= 0 && exchanged && fchmod(file, exchanged->st_mode & 07777)) {
        unlink(result->place);
        close(file);
        file = -1;
    }
    if (file >= 0)
        cli_stop_removes(result->place);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return file;
}

static int open_directly(struct result *result, const char *path)
{
    free(result->target);
    result->target = NULL;
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
}

static int open_file(struct result *result, const char *path)
{
    struct stat found;
    /* To take a file's place, no right to write to it is needed; but who took that right away meant it. */
    if (access(path, W_OK) && errno != ENOENT)
        return -1;
    result->target = realpath(path, NULL);
    bool exists = result->target && !stat(result->target, &found);
    if (exists ? !is_exchangeable(&found) : !lstat(path, &found)) /* or a link to what is yet to be made */
        return open_directly(result, path);
    if (!exists)
        result->target = strdup(path);
    int file = result->target ? open_beside(result, exists ? &found : NULL) : -1;
    /* The folder takes no new file. */
    bool shut = file < 0 && (errno == EACCES || errno == EPERM);
    return shut && exists ? open_directly(result, path) : file;
}

/* ---- the calls ---------------------------------------------------------------------------------------- */

int cli_result_unwritable(const char *what, const char *path, int error)
{
    struct stat found;
    const char *slash = strrchr(path, '/');
    int folder = slash && slash > path ? (int)(slash - path) : 0;
    char above[PATH_MAX];
    snprintf(above, sizeof above, "%.*s", folder, path);
    if (error == ENOENT && folder && stat(above, &found))
        return cli_failed("%s%s: %s (create the folder %s first)", what, path, strerror(error), above);
    return cli_failed("%s%s: %s", what, path, strerror(error));
}

int cli_result_spare(const char *what, const char *path, const char *input)
{
    struct stat written, read;
    if (stat(path, &written) || stat(input, &read) || written.st_dev != read.st_dev ||
        written.st_ino != read.st_ino || !S_ISREG(read.st_mode))
        return CLI_PROCEED;
    return cli_misused("%s%s: is the input %s (name another file)", what, path, input);
}

FILE *cli_result_open(const char *what, const char *path)
{
    struct result *result = strlen(path) < PATH_MAX ? calloc(1, sizeof *result) : NULL;
    if (!result) {
        cli_failed("%s%s: %s", what, path, strerror(strlen(path) < PATH_MAX ? ENOMEM : ENAMETOOLONG));
        return NULL;
    }
    int file = open_file(result, path);
    result->file = file >= 0 ? fdopen(file, "w") : NULL;
    if (!result->file) {
        int failed = errno;
        if (file >= 0) { /* of no use without memory for a stream */
            close(file);
            if (result->target)
                unlink(result->place);
            cli_stop_removes(opened && opened->target ? opened->place : NULL);
        }
        cli_result_unwritable(what, path, failed);
        free(result->target);
        free(result);
        return NULL;
    }
    remember(result);
    return result->file;
}

int cli_result_close(const char *what, const char *path, FILE *file)
{
    struct result *result = result_of(file);
    bool broken = ferror(file) != 0;
    broken |= fclose(file) != 0;
    bool there = !broken && (!result->target || !rename(result->place, result->target));
    int error = errno;
    if (!there && result->target)
        unlink(result->place);
    forget(result);
    if (there)
        return CLI_PROCEED;
    return cli_failed("%s%s: write failed: %s", what, path, strerror(error));
}

void cli_result_drop(FILE *file)
{
    struct result *result = result_of(file);
    fclose(file);
    if (result->target)
        unlink(result->place);
    forget(result);
}

/* ---- folder ---------------------------------------------------------------------------------------- */

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
    fputs("Results of longhaul: the next run replaces and removes files with its names in this folder.\n",
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
        "%s%s: not a folder of results, but contains %s (use another folder, or remove the file)", what,
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

/* ---- read text ------------------------------------------------------------------------------------- */

static char *cannot_read(const char *what, const char *path, const char *why)
{
    cli_failed("%s%s: %s", what, path, why);
    return NULL;
}

char *cli_read_text(const char *what, const char *path, size_t most_bytes, size_t *bytes)
{
    struct stat found;
    /* Looked at before it is opened: opening a pipe would wait for its other end. */
    if (stat(path, &found))
        return cannot_read(what, path, strerror(errno));
    if (!S_ISREG(found.st_mode))
        return cannot_read(what, path, "not a regular file");
    if (found.st_size < 0 || (uint64_t)found.st_size > most_bytes)
        return cannot_read(what, path, "file too large");
    size_t room = (size_t)found.st_size;
    char *text = malloc(room + 1);
    FILE *file = text ? fopen(path, "r") : NULL;
    *bytes = file ? fread(text, 1, room, file) : 0;
    bool broken = !file || ferror(file);
    if (broken) {
        cannot_read(what, path, text ? strerror(errno) : "out of memory");
        free(text);
        text = NULL;
    } else {
        text[*bytes] = 0;
    }
    if (file)
        fclose(file);
    return text;
}
