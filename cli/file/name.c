/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/name.h"

#include "cli/terminal/terminal.h"

#include <stdbool.h>
#include <string.h>

static bool ends_with(const char *name, size_t bytes, const char *suffix)
{
    size_t length = strlen(suffix);
    return bytes >= length && !memcmp(name + bytes - length, suffix, length);
}

const char *cli_file_name_wrong(const char *name, size_t bytes)
{
    if (!bytes)
        return "is empty";
    if (bytes > CLI_FILE_NAME_MAX)
        return "is longer than 237 bytes";
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
