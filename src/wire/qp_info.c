/*
 * qp_info.c - the blob that endpoints exchange: encode, decode. All integers big-endian.
 *
 *    0 magic 4 | 4 version 2 | 6 length 2 (all bytes)
 *    8 fabric 1 | 9 family 1 | 10 channels 1 | 11 generations 1
 *   12 message ID bits 1 | 13 fragment bits 1 | 14 send enable 1 | 15 receive enable 1
 *   16 address 16
 *   32 token 4 | 36 control QP 4 | 40 control port 2
 *   42 flags 1 (bit 0: this side, as a sender, wants feedback) | 43 credits 1
 *   44 MTU 4 | 48 chunk bytes 4 | 52 slots 4
 *   56 slot bytes 8 | 64 receive buffer bytes 8
 *   72 UDP port 2 of each channel | QP number 4 of each generation and channel, channels together
 *   last 4: CRC-32 of all before
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/qp_info.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "wire/roce_packet.h"

#define FIXED_BYTES 72u
#define CRC_BYTES   4u
#define BYTES_MIN   (FIXED_BYTES + 2u + 4u + CRC_BYTES)

static_assert(FIXED_BYTES + QP_INFO_CHANNELS_MAX * (2 + 4 * QP_INFO_GENERATIONS_MAX) + CRC_BYTES <=
                  QP_INFO_BYTES_MAX,
              "the largest blob keeps the bound");

/* The iCRC is the plain CRC-32 but for what it begins with. */
static uint32_t crc_of(const uint8_t *data, size_t bytes)
{
    return icrc_finish(icrc_add(0, data, bytes));
}

size_t qp_info_bytes(uint32_t channels, uint32_t generations)
{
    assert(channels >= 1 && channels <= QP_INFO_CHANNELS_MAX);
    assert(generations >= 1 && generations <= QP_INFO_GENERATIONS_MAX);
    return FIXED_BYTES + (size_t)channels * (2 + 4 * generations) + CRC_BYTES;
}

/* The ports and QP numbers, whose count depends on the endpoint; returns their end. */
static uint8_t *encode_channels(const struct qp_info_endpoint *endpoint, uint8_t *out)
{
    for (unsigned c = 0; c < endpoint->channels; c++, out += 2)
        lh_put_be16(out, endpoint->channel_port[c]);
    for (unsigned g = 0; g < endpoint->generations; g++) {
        for (unsigned c = 0; c < endpoint->channels; c++, out += 4)
            lh_put_be32(out, endpoint->qpn[g][c]);
    }
    return out;
}

size_t qp_info_encode(const struct qp_info *info, uint8_t *out)
{
    const struct qp_info_endpoint *endpoint = &info->endpoint;
    size_t bytes = qp_info_bytes(endpoint->channels, endpoint->generations);
    lh_put_be32(out, QP_INFO_MAGIC);
    lh_put_be16(out + 4, QP_INFO_VERSION);
    lh_put_be16(out + 6, (uint16_t)bytes);
    out[8] = endpoint->fabric;
    out[9] = endpoint->family;
    out[10] = endpoint->channels;
    out[11] = endpoint->generations;
    out[12] = info->immediate_message_bits;
    out[13] = info->immediate_fragment_bits;
    out[14] = info->send_enable;
    out[15] = info->recv_enable;
    memcpy(out + 16, endpoint->address, 16);
    lh_put_be32(out + 32, info->token);
    lh_put_be32(out + 36, endpoint->control_qpn);
    lh_put_be16(out + 40, endpoint->control_port);
    out[42] = info->wants_feedback;
    out[43] = info->credits;
    lh_put_be32(out + 44, info->mtu_bytes);
    lh_put_be32(out + 48, info->chunk_bytes);
    lh_put_be32(out + 52, info->slots);
    lh_put_be64(out + 56, info->slot_bytes);
    lh_put_be64(out + 64, endpoint->receive_buffer_bytes);
    uint8_t *end = encode_channels(endpoint, out + FIXED_BYTES);
    assert(end == out + bytes - CRC_BYTES);
    lh_put_be32(end, crc_of(out, bytes - CRC_BYTES));
    return bytes;
}

size_t qp_info_peek_bytes(const uint8_t first[8])
{
    size_t bytes = lh_get_be16(first + 6);
    if (lh_get_be32(first) != QP_INFO_MAGIC || bytes < 8 || bytes > QP_INFO_BYTES_MAX)
        return 0;
    return bytes;
}

/* Magic, version, length and CRC: whether the fields can be read at all. */
static int check_frame(const uint8_t *data, size_t bytes)
{
    if (bytes < 8)
        return lh_fail(LH_EHANDSHAKE, "QP info: %zu bytes: too short (pass all bytes of the peer's)",
                       bytes);
    size_t claimed = qp_info_peek_bytes(data);
    if (claimed == 0)
        return lh_fail(LH_EHANDSHAKE,
                       "QP info: begins with 0x%08x (pass the bytes of the peer's sdr_qp_info_get)",
                       (unsigned)lh_get_be32(data));
    unsigned version = lh_get_be16(data + 4);
    if (version != QP_INFO_VERSION)
        return lh_fail(LH_EVERSION,
                       "QP info: the peer has version %u, this side %u (run the same release on both)",
                       version, QP_INFO_VERSION);
    if (claimed != bytes || bytes < BYTES_MIN)
        return lh_fail(LH_EHANDSHAKE, "QP info: %zu of %zu bytes (pass all bytes of the peer's)", bytes,
                       claimed);
    if (lh_get_be32(data + bytes - CRC_BYTES) != crc_of(data, bytes - CRC_BYTES))
        return lh_fail(LH_EHANDSHAKE, "QP info: damaged, CRC mismatch (exchange it again)");
    return 0;
}

static void decode_fixed(const uint8_t *data, struct qp_info *info)
{
    struct qp_info_endpoint *endpoint = &info->endpoint;
    endpoint->fabric = data[8];
    endpoint->family = data[9];
    endpoint->channels = data[10];
    endpoint->generations = data[11];
    info->immediate_message_bits = data[12];
    info->immediate_fragment_bits = data[13];
    info->send_enable = data[14];
    info->recv_enable = data[15];
    memcpy(endpoint->address, data + 16, 16);
    info->token = lh_get_be32(data + 32);
    endpoint->control_qpn = lh_get_be32(data + 36);
    endpoint->control_port = lh_get_be16(data + 40);
    info->wants_feedback = data[42];
    info->credits = data[43];
    info->mtu_bytes = lh_get_be32(data + 44);
    info->chunk_bytes = lh_get_be32(data + 48);
    info->slots = lh_get_be32(data + 52);
    info->slot_bytes = lh_get_be64(data + 56);
    endpoint->receive_buffer_bytes = lh_get_be64(data + 64);
}

/* After the counts were checked. */
static void decode_channels(const uint8_t *data, struct qp_info_endpoint *endpoint)
{
    for (unsigned c = 0; c < endpoint->channels; c++, data += 2)
        endpoint->channel_port[c] = lh_get_be16(data);
    for (unsigned g = 0; g < endpoint->generations; g++) {
        for (unsigned c = 0; c < endpoint->channels; c++, data += 4)
            endpoint->qpn[g][c] = lh_get_be32(data);
    }
}

static int bad_field(const char *field, uint64_t value, const char *wanted)
{
    return lh_fail(LH_EHANDSHAKE, "QP info: %s %llu (expected %s; the peer is broken or not Longhaul)",
                   field, (unsigned long long)value, wanted);
}

static int check_counts(const uint8_t *data, size_t bytes)
{
    unsigned channels = data[10];
    unsigned generations = data[11];
    if (channels < 1 || channels > QP_INFO_CHANNELS_MAX)
        return bad_field("channels", channels, "1 to 32");
    if (generations < 1 || generations > QP_INFO_GENERATIONS_MAX)
        return bad_field("generations", generations, "1 to 8");
    if (bytes != qp_info_bytes(channels, generations))
        return bad_field("length", bytes, "as its channels and generations require");
    return 0;
}

static int check_address(const struct qp_info_endpoint *endpoint)
{
    static const uint8_t zero[12];
    if (endpoint->fabric < QP_INFO_UDP || endpoint->fabric >= QP_INFO_FABRICS_END)
        return bad_field("fabric", endpoint->fabric, "1 (udp), 2 (verbs) or 3 (sim)");
    if (endpoint->family != 4 && endpoint->family != 6)
        return bad_field("address family", endpoint->family, "4 or 6");
    if (endpoint->family == 4 && memcmp(endpoint->address + 4, zero, sizeof zero) != 0)
        return bad_field("IPv4 address of more bytes than", 4, "followed by zeros");
    return 0;
}

static int check_channels(const struct qp_info_endpoint *endpoint)
{
    bool needs_port = endpoint->fabric == QP_INFO_UDP;
    if (endpoint->control_qpn > ROCE_QPN_MASK)
        return bad_field("control QP", endpoint->control_qpn, "24 bits");
    if (needs_port && endpoint->control_port == 0)
        return bad_field("control port", 0, "1 to 65535");
    for (unsigned c = 0; c < endpoint->channels; c++) {
        if (needs_port && endpoint->channel_port[c] == 0)
            return bad_field("channel port", 0, "1 to 65535");
        for (unsigned g = 0; g < endpoint->generations; g++) {
            if (endpoint->qpn[g][c] > ROCE_QPN_MASK)
                return bad_field("channel QP", endpoint->qpn[g][c], "24 bits");
        }
    }
    return 0;
}

/* Whether the 32-bit immediate distinguishes slots and packets. */
static int check_split(const struct qp_info *info)
{
    unsigned message_bits = info->immediate_message_bits;
    unsigned fragment_bits = info->immediate_fragment_bits;
    if (message_bits < 1 || message_bits > 30)
        return bad_field("message ID bits", message_bits, "1 to 30");
    if (fragment_bits < 1 || 32 % fragment_bits != 0 || message_bits + fragment_bits > 31)
        return bad_field("fragment bits", fragment_bits, "a divisor of 32 that leaves bits for an offset");
    uint64_t packets_max = (uint64_t)1 << (32 - message_bits - fragment_bits);
    if (info->slots < 1 || info->slots > (uint32_t)1 << message_bits)
        return bad_field("slots", info->slots, "1 to 2^(message ID bits)");
    if (info->slot_bytes < 1 || info->slot_bytes > packets_max * info->mtu_bytes)
        return bad_field("slot bytes", info->slot_bytes, "1 to MTU * 2^(offset bits)");
    /* Slot i begins at VA i * slot_bytes. */
    assert(info->slot_bytes <= UINT64_MAX / info->slots);
    return 0;
}

static int check_fields(const struct qp_info *info)
{
    if (info->mtu_bytes < ROCE_PAYLOAD_MIN || info->mtu_bytes > ROCE_PAYLOAD_MAX)
        return bad_field("MTU", info->mtu_bytes, "64 to 8896");
    if (info->chunk_bytes < 1 || info->chunk_bytes % info->mtu_bytes != 0)
        return bad_field("chunk bytes", info->chunk_bytes, "a multiple of the MTU");
    if (info->send_enable > 1 || info->recv_enable > 1)
        return bad_field("enables", info->send_enable | info->recv_enable, "0 or 1");
    if (info->wants_feedback > 1)
        return bad_field("flags", info->wants_feedback, "0 or 1");
    return check_split(info);
}

uint64_t qp_info_chunk_for(uint64_t wanted_bytes, uint32_t mtu_bytes)
{
    assert(mtu_bytes > 0);
    uint64_t chunk_bytes = mtu_bytes;
    while (chunk_bytes <= wanted_bytes / 2)
        chunk_bytes *= 2;
    return chunk_bytes;
}

int qp_info_decode(const uint8_t *data, size_t bytes, struct qp_info *info)
{
    struct qp_info decoded = {0};
    int rc = check_frame(data, bytes);
    if (rc == 0)
        rc = check_counts(data, bytes);
    if (rc != 0)
        return rc;
    decode_fixed(data, &decoded);
    decode_channels(data + FIXED_BYTES, &decoded.endpoint);
    rc = check_address(&decoded.endpoint);
    if (rc == 0)
        rc = check_channels(&decoded.endpoint);
    if (rc == 0)
        rc = check_fields(&decoded);
    if (rc == 0)
        *info = decoded;
    return rc;
}
