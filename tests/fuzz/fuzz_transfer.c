/*
 * fuzz_transfer.c - whatever decodes is encoded to the same bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/control_messages.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct transfer_message message;
    if (transfer_decode(data, size, &message) == 0) {
        uint8_t out[TRANSFER_BYTES_MAX];
        size_t bytes = transfer_encode(&message, out);
        assert(bytes == size && memcmp(out, data, size) == 0);
    }
    if (size >= CONTROL_UPPER_BYTES) {
        struct transfer_cts cts;
        uint8_t out[CONTROL_UPPER_BYTES];
        if (transfer_cts_decode(data, &cts) == 0) {
            transfer_cts_encode(&cts, out);
            assert(memcmp(out, data, sizeof out) == 0);
        }
    }
    return 0;
}
