/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/name.h"

#include "cli/file/digest.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/utf8.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The longest NAME of which .NAME and each suffix still are a name. */
#define PLAIN_MAX (CLI_FILE_NAME_MAX - sizeof CLI_PARTIAL_SUFFIX)
/* Of a longer NAME: enough to tell it by; messages that name the file stay whole. */
#define BEGINNING_MAX 80

_Static_assert(sizeof CLI_PARTIAL_SUFFIX >= sizeof CLI_RESUME_SUFFIX &&
                   sizeof CLI_PARTIAL_SUFFIX >= sizeof CLI_COMMIT_SUFFIX,
               "the longest suffix");
_Static_assert(1 + BEGINNING_MAX + CLI_DIGEST_TEXT_MAX + sizeof CLI_PARTIAL_SUFFIX <= CLI_FILE_NAME_MAX,
               "a shortened name is a name");

static bool ends_with(const char *name, size_t bytes, const char *suffix)
{
    size_t length = strlen(suffix);
    return bytes >= length && !memcmp(name + bytes - length, suffix, length);
}

/* Bytes of the characters that fit that many; of a name that is no text, so many bytes. */
static size_t beginning(const char *name, size_t most)
{
    size_t used = 0;
    while (used < most) {
        size_t character = cli_utf8_bytes(name + used, strlen(name + used));
        if (!character)
            return most;
        if (used + character > most)
            break;
        used += character;
    }
    return used;
}

char *cli_file_name_unfinished(const char *name, const char *suffix, char out[CLI_FILE_NAME_MAX + 1])
{
    uint8_t digest[CLI_DIGEST_BYTES];
    char text[CLI_DIGEST_TEXT_MAX];
    if (strlen(name) <= PLAIN_MAX) {
        snprintf(out, CLI_FILE_NAME_MAX + 1, ".%s%s", name, suffix);
        return out;
    }
    cli_digest_of(name, strlen(name), digest);
    snprintf(out, CLI_FILE_NAME_MAX + 1, ".%.*s-%s%s", (int)beginning(name, BEGINNING_MAX), name,
             cli_digest_text(digest, text), suffix);
    return out;
}

const char *cli_file_name_wrong(const char *name, size_t bytes)
{
    if (!bytes)
        return "is empty";
    if (bytes > CLI_FILE_NAME_MAX)
        return "is longer than 255 bytes";
    if (memchr(name, '/', bytes))
        return "contains a slash";
    if ((bytes == 1 && name[0] == '.') || (bytes == 2 && name[0] == '.' && name[1] == '.'))
        return "is a folder, . or ..";
    if (!cli_text_is_clean(name, bytes))
        return "contains a control character";
    /* It could be the half of another transfer. */
    if (ends_with(name, bytes, CLI_PARTIAL_SUFFIX) || ends_with(name, bytes, CLI_RESUME_SUFFIX) ||
        ends_with(name, bytes, CLI_COMMIT_SUFFIX))
        return "is reserved for unfinished files";
    return NULL;
}
