/*
 * fuzz_roce.c - a UDP payload from anyone: decoding, the iCRC check over it, and its way back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/roce_packet.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void assert_same(const struct roce_packet *a, const struct roce_packet *b)
{
    assert(a->opcode == b->opcode && a->dest_qpn == b->dest_qpn && a->psn == b->psn);
    assert(a->va == b->va && a->rkey == b->rkey && a->immediate == b->immediate);
    assert(a->payload_bytes == b->payload_bytes);
    assert(memcmp(a->payload, b->payload, a->payload_bytes) == 0);
}

/* What is decoded lies inside the datagram, and encodes to a packet that decodes the same. */
static void check_packet(const uint8_t *data, size_t size, const struct roce_packet *packet)
{
    static uint8_t again[ROCE_PAYLOAD_MAX + 64];
    struct roce_packet decoded;
    size_t padded = packet->payload_bytes + roce_pad_bytes(packet->payload_bytes);
    size_t header = roce_encode_header(packet, again);
    assert(header == roce_header_bytes(data[0]));
    assert(packet->payload == data + header && header + padded + ROCE_ICRC_BYTES == size);
    memcpy(again + header, packet->payload, size - header);
    assert(roce_decode(again, size, &decoded) == ROCE_OK);
    assert_same(&decoded, packet);
}

/* A packet whose iCRC is made right is accepted, and no more once a bit of it flips. */
static void check_icrc(const struct icrc_flow *flow, const uint8_t *data, size_t size)
{
    static uint8_t copy[ROCE_PAYLOAD_MAX + 64];
    memcpy(copy, data, size);
    uint32_t state = icrc_begin(flow, (uint32_t)size, 0, true);
    state = icrc_add_header(state, copy, size - ROCE_ICRC_BYTES);
    icrc_store(state, copy + size - ROCE_ICRC_BYTES);
    assert(icrc_check(flow, copy, size, 0));
    copy[size - 1] ^= 1;
    assert(flow->ipv4 || !icrc_check(flow, copy, size, 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct icrc_flow v6 = {.source_port = 49152, .destination_port = ROCE_UDP_PORT};
    static const struct icrc_flow v4 = {.ipv4 = true, .destination_port = ROCE_UDP_PORT};
    struct roce_packet packet;
    icrc_check(&v6, data, size, 0);
    icrc_check(&v4, data, size, 0);
    if (roce_decode(data, size, &packet) != ROCE_OK)
        return 0;
    check_packet(data, size, &packet);
    check_icrc(&v6, data, size);
    check_icrc(&v4, data, size);
    return 0;
}
