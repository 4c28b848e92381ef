/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/results/result_file.h"

#include "cli/terminal/diagnostic.h"

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

FILE *cli_result_open(const char *what, const char *path)
{
    char place[PLACE_MAX];
    bool direct = find_place(path, place);
    /* To take a file's place, no right to write to it is needed; but who took that right away meant it. */
    bool forbidden = !direct && access(path, W_OK) && errno != ENOENT;
    FILE *file = forbidden ? NULL : fopen(place, "w");
    if (!file)
        cli_failed("%s%s: %s", what, path, strerror(errno));
    return file;
}

int cli_result_close(const char *what, const char *path, FILE *file)
{
    char place[PLACE_MAX];
    bool direct = find_place(path, place), broken = ferror(file) != 0;
    broken |= fclose(file) != 0;
    if (!broken && (direct || !rename(place, path)))
        return CLI_PROCEED;
    int error = errno;
    if (!direct)
        unlink(place);
    return cli_failed("%s%s: write failed: %s", what, path, strerror(error));
}

void cli_result_drop(const char *path, FILE *file)
{
    char place[PLACE_MAX];
    bool direct = find_place(path, place);
    fclose(file);
    if (!direct)
        unlink(place);
}
