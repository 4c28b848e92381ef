/*
 * MARK, ACK and REQUEST of the erasure-code schemes from any bytes: what decodes encodes to the same bytes
 * again. And their parameters: what is valid makes a layout whose groups share the message out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/scheme_messages.h"

#include <assert.h>
#include <string.h>

#include "schemes/ec_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_messages(const uint8_t *data, size_t size)
{
    uint8_t bytes[EC_REQUEST_BYTES_MAX];
    struct ec_mark mark;
    struct ec_ack ack;
    static struct ec_request request;
    bool is_mark = ec_mark_decode(data, size, &mark) == 0;
    bool is_ack = ec_ack_decode(data, size, &ack) == 0;
    bool is_request = ec_request_decode(data, size, &request) == 0;
    assert(is_mark + is_ack + is_request <= 1);
    if (is_mark)
        assert(ec_mark_encode(&mark, bytes) == size && memcmp(bytes, data, size) == 0);
    if (is_ack)
        assert(ec_ack_encode(&ack, bytes) == size && memcmp(bytes, data, size) == 0);
    if (is_request)
        assert(ec_request_encode(&request, bytes) == size && memcmp(bytes, data, size) == 0);
}

static void try_params(const uint8_t params[LH_SCHEME_PARAMS], uint32_t slot_chunks)
{
    bool mds = ec_mds_params_valid(params);
    bool xor_valid = ec_xor_params_valid(params);
    assert(!mds || !xor_valid);
    if (!mds && !xor_valid)
        return;
    uint32_t chunks = ec_transfer_chunks_max(params, slot_chunks);
    assert(chunks <= slot_chunks && ec_extra_chunks(params, chunks) <= slot_chunks);
    assert(chunks == slot_chunks || ec_extra_chunks(params, chunks + 1) > slot_chunks || chunks == 0);
    struct ec_layout layout = ec_layout_of(params, chunks);
    uint32_t shared = 0;
    for (uint32_t group = 0; group < layout.groups; group++) {
        struct ec_group of = ec_layout_group(&layout, group);
        shared += of.size;
        assert(of.first_chunk + (of.size - 1) * of.stride < chunks);
        assert(chunks == 1 || of.first_place + (ec_group_rows_max(&layout, &of) - 1) * of.stride <
                                  ec_layout_extra(&layout));
        assert(of.rows >= (chunks > 1) && of.rows <= ec_group_rows_max(&layout, &of));
        assert(of.size + ec_group_rows_max(&layout, &of) <= EC_ROWS_MAX);
    }
    assert(shared == chunks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_messages(data, size);
    if (size == LH_SCHEME_PARAMS + 1)
        try_params(data, data[LH_SCHEME_PARAMS] * 3u);
    return 0;
}
