/*
 * roce.c - the RoCEv2 UC ONLY packets and the CNP: one encoder, one decoder.
 *
 * BTH, 12 bytes: opcode 1 | SE, M, pad count, version 1 | P_Key 2 | F, B, reserved 1 | destination QP 3 |
 * A, reserved 1 | PSN 3. RETH, 16 bytes: VA 8 | R_Key 4 | DMA length 4.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/roce.h"

#include <assert.h>
#include <string.h>

#include "base/big_endian.h"

/* BTH byte 1. */
/* M: set by us, as NICs do; Soft-RoCE sends it clear, so reading ignores it. */
#define BTH_MIGRATED     0x40u
#define BTH_PAD_SHIFT    4
#define BTH_PAD_MASK     3u
#define BTH_VERSION_MASK 0x0Fu /* TVer, 0 since InfiniBand 1.0 */

/* BTH byte 4: FECN, BECN. The iCRC does not cover them, so reading ignores both. */
#define BTH_BECN 0x40u

/* The partition without its top bit, which tells full from limited members: we are full, so both may talk.
 */
#define PKEY_PARTITION_MASK 0x7FFFu

size_t roce_header_bytes(uint8_t opcode)
{
    switch (opcode) {
    case ROCE_UC_SEND_ONLY:
        return ROCE_SEND_HEADER_BYTES;
    case ROCE_UC_WRITE_ONLY:
        return ROCE_WRITE_HEADER_BYTES;
    case ROCE_UC_WRITE_ONLY_IMM:
        return ROCE_WRITE_IMM_HEADER_BYTES;
    case ROCE_CNP:
        return ROCE_CNP_HEADER_BYTES;
    default:
        return 0;
    }
}

static uint32_t payload_max(uint8_t opcode)
{
    return opcode == ROCE_UC_SEND_ONLY ? ROCE_SEND_MAX : ROCE_MTU_MAX;
}

size_t roce_encode_header(const struct roce_packet *packet, uint8_t *out)
{
    assert(roce_header_bytes((uint8_t)packet->opcode) != 0);
    assert(packet->dest_qpn <= ROCE_QPN_MASK && packet->psn <= ROCE_PSN_MASK);
    assert(packet->payload_bytes <= payload_max((uint8_t)packet->opcode));
    out[0] = (uint8_t)packet->opcode;
    out[1] = (uint8_t)(BTH_MIGRATED | roce_pad_bytes(packet->payload_bytes) << BTH_PAD_SHIFT);
    lh_put_be16(out + 2, ROCE_PKEY_DEFAULT);
    out[4] = packet->opcode == ROCE_CNP ? BTH_BECN : 0;
    lh_put_be24(out + 5, packet->dest_qpn);
    out[8] = 0;
    lh_put_be24(out + 9, packet->psn);
    if (packet->opcode == ROCE_UC_SEND_ONLY)
        return ROCE_SEND_HEADER_BYTES;
    if (packet->opcode == ROCE_CNP) {
        assert(packet->payload_bytes == 0);
        memset(out + ROCE_BTH_BYTES, 0, ROCE_CNP_HEADER_BYTES - ROCE_BTH_BYTES);
        return ROCE_CNP_HEADER_BYTES;
    }
    lh_put_be64(out + 12, packet->va);
    lh_put_be32(out + 20, packet->rkey);
    lh_put_be32(out + 24, packet->payload_bytes);
    if (packet->opcode == ROCE_UC_WRITE_ONLY)
        return ROCE_WRITE_HEADER_BYTES;
    lh_put_be32(out + 28, packet->immediate);
    return ROCE_WRITE_IMM_HEADER_BYTES;
}

static enum roce_verdict decode_bth(const uint8_t *data, size_t bytes, struct roce_packet *packet)
{
    if (bytes < ROCE_BTH_BYTES)
        return ROCE_BAD_HEADER;
    size_t header = roce_header_bytes(data[0]);
    if (header == 0 || bytes < header + ROCE_ICRC_BYTES)
        return ROCE_BAD_HEADER;
    if ((data[1] & BTH_VERSION_MASK) != 0)
        return ROCE_BAD_HEADER;
    if ((lh_get_be16(data + 2) & PKEY_PARTITION_MASK) != (ROCE_PKEY_DEFAULT & PKEY_PARTITION_MASK))
        return ROCE_BAD_HEADER;
    packet->opcode = (enum roce_opcode)data[0];
    packet->dest_qpn = lh_get_be24(data + 5);
    packet->psn = lh_get_be24(data + 9);
    return ROCE_OK;
}

/* Needs the opcode and a datagram that holds header and iCRC. */
static enum roce_verdict decode_payload(const uint8_t *data, size_t bytes, struct roce_packet *packet)
{
    size_t header = roce_header_bytes(data[0]);
    size_t padded = bytes - header - ROCE_ICRC_BYTES;
    uint32_t pad = (uint32_t)data[1] >> BTH_PAD_SHIFT & BTH_PAD_MASK;
    /* A payload is padded to four bytes, no more: together these two make the pad count the only possible
     * one. */
    if (padded % 4 != 0 || pad > padded || padded - pad > payload_max(data[0]))
        return ROCE_BAD_LENGTH;
    packet->payload = data + header;
    packet->payload_bytes = (uint32_t)padded - pad;
    assert(roce_pad_bytes(packet->payload_bytes) == pad);
    return ROCE_OK;
}

enum roce_verdict roce_decode(const uint8_t *data, size_t bytes, struct roce_packet *packet)
{
    struct roce_packet decoded = {0};
    enum roce_verdict verdict = decode_bth(data, bytes, &decoded);
    if (verdict == ROCE_OK)
        verdict = decode_payload(data, bytes, &decoded);
    if (verdict != ROCE_OK)
        return verdict;
    if (decoded.opcode == ROCE_CNP && decoded.payload_bytes != 0)
        return ROCE_BAD_LENGTH;
    if (decoded.opcode == ROCE_UC_WRITE_ONLY || decoded.opcode == ROCE_UC_WRITE_ONLY_IMM) {
        decoded.va = lh_get_be64(data + 12);
        decoded.rkey = lh_get_be32(data + 20);
        if (lh_get_be32(data + 24) != decoded.payload_bytes)
            return ROCE_BAD_LENGTH;
    }
    if (decoded.opcode == ROCE_UC_WRITE_ONLY_IMM)
        decoded.immediate = lh_get_be32(data + 28);
    *packet = decoded;
    return ROCE_OK;
}
