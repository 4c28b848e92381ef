/*
 * fuzz_cli_perf_message.c - a message of longhaul perf from anyone.
 *
 * Each valid message has one encoding only, so what decodes must encode to the very same bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>
#include <assert.h>
#include "cli/perf/perf_messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cli_perf_message message;
    uint8_t again[CLI_PERF_MESSAGE_MAX];
    if (cli_perf_decode(data, size, &message) != 0)
        return 0;
    assert(cli_perf_encode(&message, again) == size);
    assert(memcmp(again, data, size) == 0);
    return 0;
}
