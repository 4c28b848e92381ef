/*
 * size_list.h - sizes of a sweep as text: "64KiB", "64KiB,1MiB", "64KiB..64MiB" (doubling), or a mix of
 * those.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_SIZE_LIST_H
#define LH_CLI_OPTIONS_SIZE_LIST_H

#include <stdint.h>

#define CLI_SIZES_MAX 64

struct cli_size_list {
    unsigned count;
    uint64_t bytes[CLI_SIZES_MAX];
};

/* Each size from 1 to max_bytes. CLI_PROCEED; or CLI_EXIT_USAGE after reporting the cause for that option. */
int cli_size_list_parse(const char *option, const char *text, uint64_t max_bytes,
                        struct cli_size_list *list);

#endif
