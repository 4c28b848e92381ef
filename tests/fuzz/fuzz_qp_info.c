/*
 * fuzz_qp_info.c - the blob of a peer, with a right CRC, else nothing past it would ever be reached.
 *
 * Each valid blob has one encoding only, so what decodes must encode to the very same bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/qp_info.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/roce_packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the rooms above rely on. */
static void check_info(const struct qp_info *info)
{
    const struct qp_info_endpoint *endpoint = &info->endpoint;
    assert(endpoint->channels >= 1 && endpoint->channels <= QP_INFO_CHANNELS_MAX);
    assert(endpoint->generations >= 1 && endpoint->generations <= QP_INFO_GENERATIONS_MAX);
    assert(info->mtu_bytes > 0 && info->chunk_bytes % info->mtu_bytes == 0);
    struct immediate_split split = {
        .message_bits = info->immediate_message_bits,
        .offset_bits = (uint8_t)(32 - info->immediate_message_bits - info->immediate_fragment_bits),
        .fragment_bits = info->immediate_fragment_bits,
    };
    struct immediate_fields last = {
        .message = info->slots - 1,
        .packet = (uint32_t)((info->slot_bytes - 1) / info->mtu_bytes),
        .fragment = immediate_fragment_of(split, UINT32_MAX, 0),
    };
    struct immediate_fields back = immediate_part(split, immediate_join(split, last));
    assert(back.message == last.message && back.packet == last.packet && back.fragment == last.fragment);
}

static void check_blob(const uint8_t *blob, size_t size)
{
    struct qp_info info;
    uint8_t again[QP_INFO_BYTES_MAX];
    if (qp_info_decode(blob, size, &info) != 0)
        return;
    check_info(&info);
    assert(qp_info_peek_bytes(blob) == size);
    assert(qp_info_encode(&info, again) == size);
    assert(memcmp(again, blob, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t blob[QP_INFO_BYTES_MAX];
    check_blob(data, size);
    if (size < 4 || size > sizeof blob)
        return 0;
    memcpy(blob, data, size);
    lh_put_be32(blob + size - 4, icrc_finish(icrc_add(0, blob, size - 4)));
    check_blob(blob, size);
    return 0;
}
