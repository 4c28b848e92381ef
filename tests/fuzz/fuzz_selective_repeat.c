/*
 * MARK and ACK from any bytes: what decodes encodes to the same bytes again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/scheme_messages.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[SR_ACK_BYTES_MAX];
    struct sr_mark mark;
    struct sr_ack ack;
    bool is_mark = sr_mark_decode(data, size, &mark) == 0;
    bool is_ack = sr_ack_decode(data, size, &ack) == 0;
    assert(!is_mark || !is_ack);
    if (is_mark)
        assert(sr_mark_encode(&mark, bytes) == size && memcmp(bytes, data, size) == 0);
    if (is_ack)
        assert(sr_ack_encode(&ack, bytes) == size && memcmp(bytes, data, size) == 0);
    return 0;
}
