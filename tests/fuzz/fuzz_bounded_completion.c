/*
 * END and ACK from any bytes: what decodes encodes to the same bytes again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/scheme_messages.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[BOUNDED_MESSAGE_BYTES];
    struct bounded_message message;
    if (bounded_message_decode(data, size, &message) == 0)
        assert(bounded_message_encode(&message, bytes) == size && memcmp(bytes, data, size) == 0);
    return 0;
}
