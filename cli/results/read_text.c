/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/results/read_text.h"

#include "cli/terminal/diagnostic.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
