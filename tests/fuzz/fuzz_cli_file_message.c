/*
 * fuzz_cli_file_message.c - a message of longhaul distribute from another rank.
 *
 * Each valid message has one encoding only, so what decodes must encode to the very same bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>
#include <assert.h>
#include "cli/distribute/distribute_streams.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cli_file_message message;
    uint8_t again[CLI_FILE_MESSAGE_MAX];
    if (cli_file_decode(data, size, &message) != 0)
        return 0;
    assert(cli_file_encode(&message, again) == size);
    assert(memcmp(again, data, size) == 0);
    struct cli_file_attributes attributes;
    if (!cli_file_attributes_decode(message.digest, &attributes)) {
        cli_file_attributes_encode(&attributes, again);
        assert(memcmp(again, message.digest, CLI_DIGEST_BYTES) == 0);
    }
    return 0;
}
