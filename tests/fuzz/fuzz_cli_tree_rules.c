/*
 * fuzz_cli_tree_rules.c - a pattern of --exclude and a path: no pattern that is let pass is read beyond its
 * end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/file/tree_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    if (!end)
        return 0;
    size_t bytes = size - (size_t)(end + 1 - data);
    char *pattern = strdup((const char *)data), *path = malloc(bytes + 1);
    assert(pattern && path);
    memcpy(path, end + 1, bytes);
    path[bytes] = 0;
    if (!cli_tree_pattern_wrong(pattern)) {
        cli_tree_pattern_matches(pattern, path, true);
        cli_tree_pattern_matches(pattern, path, false);
    }
    free(pattern);
    free(path);
    return 0;
}
