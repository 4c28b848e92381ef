/*
 * fuzz_cli_tree_record.c - a message of records from anyone.
 *
 * Each valid record has one encoding only, so what decodes must encode to the very same bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cli/file/tree_records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cli_tree_record record;
    char shown[64];
    if (!cli_tree_first(data, size, &record))
        assert(record.number == CLI_TREE_VERSION && !record.rest_bytes);
    for (size_t at = 0; at < size;) {
        int64_t used = cli_tree_decode(data + at, size - at, &record);
        if (used < 0)
            break;
        assert(used > 0 && (size_t)used <= size - at);
        uint8_t *again = malloc((size_t)used);
        assert(again && cli_tree_encode(&record, again, (size_t)used) == (size_t)used);
        assert(!memcmp(again, data + at, (size_t)used));
        assert(!memchr(record.path, 0, record.path_bytes));
        cli_tree_path_shown(record.path, record.path_bytes, shown, sizeof shown);
        free(again);
        at += (size_t)used;
    }
    return 0;
}
