/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/roce_packet.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/crc32.h"

/* ---- roce ------------------------------------------------------------------------------------------ */

/*
 * The RoCEv2 UC ONLY packets and the CNP: one encoder, one decoder.
 *
 * BTH, 12 bytes: opcode 1 | SE, M, pad count, version 1 | P_Key 2 | F, B, reserved 1 | destination QP 3 |
 * A, reserved 1 | PSN 3. RETH, 16 bytes: VA 8 | R_Key 4 | DMA length 4.
 */

#define ROCE_WRITE_HEADER_BYTES (ROCE_BTH_BYTES + ROCE_RETH_BYTES)

/* A send may be as long on the wire as the longest write with immediate: it probes the path for that. */
#define ROCE_SEND_MAX (ROCE_PAYLOAD_MAX + ROCE_WRITE_IMM_HEADER_BYTES - ROCE_SEND_HEADER_BYTES)

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

uint32_t roce_payload_for(uint32_t path_bytes, uint32_t overhead_bytes)
{
    if (path_bytes < ROCE_MTU_MIN + overhead_bytes)
        return 0;
    uint32_t fits = path_bytes - overhead_bytes;
    return fits < ROCE_PAYLOAD_MAX ? fits - fits % ROCE_PAYLOAD_STEP : ROCE_PAYLOAD_MAX;
}

uint32_t roce_mtu_for(uint32_t payload_bytes)
{
    assert(payload_bytes >= ROCE_MTU_MIN);
    uint32_t mtu = ROCE_MTU_MAX;
    while (mtu > payload_bytes) /* at most four times */
        mtu /= 2;
    return mtu;
}

bool roce_payload_is_valid(uint32_t payload_bytes)
{
    return payload_bytes >= ROCE_PAYLOAD_MIN && payload_bytes <= ROCE_PAYLOAD_MAX &&
           payload_bytes % ROCE_PAYLOAD_STEP == 0;
}

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
    return opcode == ROCE_UC_SEND_ONLY ? ROCE_SEND_MAX : ROCE_PAYLOAD_MAX;
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

/* ---- icrc ------------------------------------------------------------------------------------------ */

/*
 * The invariant CRC, and the IP ID that a plain IPv4 socket does not show.
 *
 * States are what zlib calls a CRC: the final inversion is done, and undone to go on.
 */

#define ICRC_BYTES      4u
#define BTH_BYTES       12u
#define HEADERS_BYTES   32u /* of a write with immediate, the longest */
#define BTH_MASKED_BYTE 4u  /* F, B and reserved bits: switches set congestion marks there */
#define UDP_BYTES       8u
#define IPV4_BYTES      20u
#define IPV6_BYTES      40u
#define IP_PROTOCOL_UDP 17u
/* Largest UDP payload of an IPv4 datagram; IPv6 takes 20 more, but no RoCE packet comes near. */
#define UDP_PAYLOAD_MAX (65535u - UDP_BYTES - IPV4_BYTES)

/* After eight bytes of ones, which stand for the InfiniBand local route header that Ethernet lacks. */
#define STATE_AFTER_LRH 0x2144DF1Cu

static uint8_t *put_ipv4(uint8_t *out, const struct icrc_flow *flow, uint32_t udp_bytes, uint16_t ip_id,
                         bool dont_fragment)
{
    out[0] = 0x45;
    out[1] = 0xFF; /* type of service */
    lh_put_be16(out + 2, (uint16_t)(IPV4_BYTES + udp_bytes));
    lh_put_be16(out + 4, ip_id);
    lh_put_be16(out + 6, dont_fragment ? 0x4000 : 0);
    out[8] = 0xFF; /* time to live */
    out[9] = IP_PROTOCOL_UDP;
    lh_put_be16(out + 10, 0xFFFF); /* header checksum */
    memcpy(out + 12, flow->source, 4);
    memcpy(out + 16, flow->destination, 4);
    return out + IPV4_BYTES;
}

static uint8_t *put_ipv6(uint8_t *out, const struct icrc_flow *flow, uint32_t udp_bytes)
{
    lh_put_be32(out, 0x6FFFFFFF); /* traffic class and flow label */
    lh_put_be16(out + 4, (uint16_t)udp_bytes);
    out[6] = IP_PROTOCOL_UDP;
    out[7] = 0xFF; /* hop limit */
    memcpy(out + 8, flow->source, 16);
    memcpy(out + 24, flow->destination, 16);
    return out + IPV6_BYTES;
}

uint32_t icrc_begin(const struct icrc_flow *flow, uint32_t udp_payload_bytes, uint16_t ip_id,
                    bool dont_fragment)
{
    assert(udp_payload_bytes >= BTH_BYTES + ICRC_BYTES && udp_payload_bytes <= UDP_PAYLOAD_MAX);
    uint8_t pseudo[IPV6_BYTES + UDP_BYTES];
    uint32_t udp_bytes = UDP_BYTES + udp_payload_bytes;
    uint8_t *udp = flow->ipv4 ? put_ipv4(pseudo, flow, udp_bytes, ip_id, dont_fragment)
                              : put_ipv6(pseudo, flow, udp_bytes);
    lh_put_be16(udp, flow->source_port);
    lh_put_be16(udp + 2, flow->destination_port);
    lh_put_be16(udp + 4, (uint16_t)udp_bytes);
    lh_put_be16(udp + 6, 0xFFFF); /* checksum */
    return crc32_add(STATE_AFTER_LRH, pseudo, (size_t)(udp + UDP_BYTES - pseudo));
}

uint32_t icrc_add_header(uint32_t state, const uint8_t *header, size_t bytes)
{
    assert(bytes >= BTH_BYTES);
    /* Whole headers at once: a call for a few bytes costs as much as one for 64. */
    uint8_t masked[HEADERS_BYTES];
    const size_t first = bytes < HEADERS_BYTES ? bytes : HEADERS_BYTES;
    memcpy(masked, header, first);
    masked[BTH_MASKED_BYTE] = 0xFF;
    state = crc32_add(state, masked, first);
    return crc32_add(state, header + first, bytes - first);
}

uint32_t icrc_add(uint32_t state, const uint8_t *data, size_t bytes)
{
    return crc32_add(state, data, bytes);
}

uint32_t icrc_add_ahead(uint32_t state, const uint8_t *data, size_t bytes, const uint8_t *later)
{
    return crc32_add_ahead(state, data, bytes, later);
}

uint32_t icrc_finish(uint32_t state)
{
    return state;
}

void icrc_store(uint32_t state, uint8_t out[4])
{
    uint32_t value = icrc_finish(state);
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(value >> 8 * i);
}

uint32_t icrc_load(const uint8_t in[4])
{
    return (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

bool icrc_check(const struct icrc_flow *flow, const uint8_t *udp_payload, size_t bytes, uint16_t likely_id)
{
    if (bytes < BTH_BYTES + ICRC_BYTES || bytes > UDP_PAYLOAD_MAX)
        return false;
    uint32_t length = (uint32_t)bytes;
    uint32_t state = icrc_begin(flow, length, likely_id, true);
    uint32_t found = icrc_finish(icrc_add_header(state, udp_payload, bytes - ICRC_BYTES));
    uint32_t wanted = icrc_load(udp_payload + bytes - ICRC_BYTES);
    if (found == wanted)
        return true;
    uint16_t difference;
    return flow->ipv4 && icrc_solve_ip_id(found, wanted, length, &difference);
}

/*
 * Solving for the IP ID.
 *
 * Seen as polynomials over GF(2), a change d(x) of the ID, which n bits follow, changes the CRC by
 * d(x) * x^(n + 32) mod P. P is irreducible, so x has an inverse, and multiplying the difference of two
 * CRCs by x^-(n + 32) gives d(x) back. Only a difference that the ID made leaves a polynomial of fewer than
 * 16 terms: the upper half of the result being zero is the residual check.
 *
 * Polynomials are stored reflected, as the CRC is: bit 31 is the coefficient of x^0.
 */
#define POLYNOMIAL  0xEDB88320u
#define X_TO_0      0x80000000u
#define X_TO_MINUS1 0xDB710641u /* times x is x^0: (it >> 1) ^ POLYNOMIAL == X_TO_0 */

static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (unsigned i = 0; i < 32; i++) {
        product ^= b & (0u - (a >> 31));
        a <<= 1;
        b = (b >> 1) ^ (POLYNOMIAL & (0u - (b & 1)));
    }
    return product;
}

/* x^-power; at most 32 rounds. */
static uint32_t inverse_power_of_x(uint32_t power)
{
    uint32_t result = X_TO_0;
    for (uint32_t square = X_TO_MINUS1; power != 0; power >>= 1) {
        if (power & 1)
            result = multiply(result, square);
        square = multiply(square, square);
    }
    return result;
}

/* x^-(n + 32) for a datagram of that length. Most packets of a flow are as long as the one before. */
static uint32_t ip_id_factor(uint32_t udp_payload_bytes)
{
    static _Thread_local uint32_t cached_length;
    static _Thread_local uint32_t cached_factor;
    const uint32_t after_ip_id = IPV4_BYTES - 6 + UDP_BYTES + udp_payload_bytes - ICRC_BYTES;
    if (cached_length != udp_payload_bytes) {
        cached_factor = inverse_power_of_x(8 * after_ip_id + 32);
        cached_length = udp_payload_bytes;
    }
    return cached_factor;
}

bool icrc_solve_ip_id(uint32_t with_id_zero, uint32_t wanted, uint32_t udp_payload_bytes, uint16_t *ip_id)
{
    assert(udp_payload_bytes >= BTH_BYTES + ICRC_BYTES && udp_payload_bytes <= UDP_PAYLOAD_MAX);
    uint32_t solved = multiply(with_id_zero ^ wanted, ip_id_factor(udp_payload_bytes));
    if ((solved & 0xFFFF) != 0)
        return false;
    /* Each byte goes least significant bit first, the upper byte of the ID before the lower. */
    *ip_id = (uint16_t)((solved >> 16 & 0xFF) << 8 | solved >> 24);
    return true;
}
