/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/results/result_file.h"

#include "cli/terminal/diagnostic.h"
#include "cli/terminal/stop.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART      ".part"
#define PLACE_MAX (PATH_MAX + NAME_MAX + 8)

/* Where it is written until it is closed: the path itself when what is there is no plain file. */
static bool find_place(const char *path, char *place)
{
    struct stat found;
    bool direct = !lstat(path, &found) && !S_ISREG(found.st_mode);
    snprintf(place, PLACE_MAX, "%s%s", path, direct ? "" : PART);
    return direct;
}

/* Of the last that was opened. */
static void remove_if_stopped(const char *place)
{
    static char kept[PLACE_MAX];
    cli_stop_removes(NULL);
    snprintf(kept, sizeof kept, "%s", place);
    cli_stop_removes(kept);
}

FILE *cli_result_open(const char *what, const char *path)
{
    char place[PLACE_MAX];
    bool direct = find_place(path, place);
    /* To take a file's place, no right to write to it is needed; but who took that right away meant it. */
    bool forbidden = !direct && access(path, W_OK) && errno != ENOENT;
    if (!direct && !forbidden)
        remove_if_stopped(place);
    FILE *file = forbidden ? NULL : fopen(place, "w");
    if (file)
        return file;
    cli_failed("%s%s: %s", what, path, strerror(errno));
    cli_stop_removes(NULL);
    return NULL;
}

int cli_result_close(const char *what, const char *path, FILE *file)
{
    char place[PLACE_MAX];
    bool direct = find_place(path, place), broken = ferror(file) != 0;
    broken |= fclose(file) != 0;
    bool renamed = !broken && (direct || !rename(place, path));
    int error = errno;
    if (!renamed && !direct)
        unlink(place);
    cli_stop_removes(NULL);
    if (renamed)
        return CLI_PROCEED;
    return cli_failed("%s%s: write failed: %s", what, path, strerror(error));
}

void cli_result_drop(const char *path, FILE *file)
{
    char place[PLACE_MAX];
    bool direct = find_place(path, place);
    fclose(file);
    if (!direct)
        unlink(place);
    cli_stop_removes(NULL);
}
