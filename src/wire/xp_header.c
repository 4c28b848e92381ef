/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/xp_header.h"

#include "base/bytes.h"

#define SOLICITED   0x80u
#define PAD_SHIFT   4
#define TRANSPORT   0x0Fu /* version: 0 */
#define OFFSET_AT   ROCE_BTH_BYTES
#define KEY_AT      (OFFSET_AT + 8)
#define IMM_AT      (KEY_AT + 4)
#define LENGTH_AT   (IMM_AT + 4)
#define DEADLINE_AT (LENGTH_AT + 4)
#define RECEIVE_AT  (DEADLINE_AT + 4)
#define STRIDE_AT   (RECEIVE_AT + 2)

_Static_assert(STRIDE_AT + 2 == XP_HEADER_BYTES, "all of the header is used");

void xp_encode_header(const struct xp_packet *packet, uint8_t out[XP_HEADER_BYTES])
{
    out[0] = (uint8_t)packet->opcode;
    out[1] = (uint8_t)((packet->last ? SOLICITED : 0) | roce_pad_bytes(packet->payload_bytes) << PAD_SHIFT);
    lh_put_be16(out + 2, ROCE_PKEY_DEFAULT);
    lh_put_be32(out + 4, packet->dest_qpn & ROCE_QPN_MASK);
    lh_put_be32(out + 8, packet->wqe_seq & XP_SEQ_MASK);
    lh_put_be64(out + OFFSET_AT, packet->offset);
    lh_put_be32(out + KEY_AT, packet->key);
    lh_put_be32(out + IMM_AT, packet->immediate);
    lh_put_be32(out + LENGTH_AT, packet->length);
    lh_put_be32(out + DEADLINE_AT, packet->deadline_us);
    lh_put_be16(out + RECEIVE_AT, packet->receive);
    lh_put_be16(out + STRIDE_AT, packet->stride);
}

/* Which fields a packet has, by its opcode. */
struct shape {
    bool payload, offset, key, immediate, length, deadline, receive;
};

static const struct shape shapes[] = {
    [XP_SEND - XP_OPCODE_FIRST] = {.payload = true, .offset = true, .length = true, .receive = true},
    [XP_WRITE - XP_OPCODE_FIRST] = {.payload = true, .offset = true, .key = true, .length = true},
    [XP_WRITE_IMM - XP_OPCODE_FIRST] =
        {.payload = true, .offset = true, .key = true, .immediate = true, .length = true, .receive = true},
    [XP_READ_REQUEST - XP_OPCODE_FIRST] = {.offset = true, .key = true, .length = true, .deadline = true},
    [XP_READ_RESPONSE - XP_OPCODE_FIRST] = {.payload = true, .offset = true, .length = true},
    [XP_NOTIFICATION - XP_OPCODE_FIRST] = {.payload = false},
};

/* What its kind does not have is zero. */
static bool fits(const struct xp_packet *packet)
{
    const struct shape *shape = &shapes[packet->opcode - XP_OPCODE_FIRST];
    return (shape->payload || (packet->payload_bytes == 0 && !packet->last && packet->stride == 0)) &&
           (shape->offset || packet->offset == 0) && (shape->key || packet->key == 0) &&
           (shape->immediate || packet->immediate == 0) && (shape->length || packet->length == 0) &&
           (shape->deadline || packet->deadline_us == 0) && (shape->receive || packet->receive == 0);
}

static bool header_valid(const uint8_t *data, size_t bytes)
{
    return bytes >= XP_OVERHEAD && data[0] >= XP_OPCODE_FIRST && data[0] <= XP_OPCODE_LAST &&
           (data[1] & TRANSPORT) == 0 && lh_get_be16(data + 2) == ROCE_PKEY_DEFAULT;
}

static void decode_fields(const uint8_t *data, struct xp_packet *packet)
{
    packet->opcode = (enum xp_opcode)data[0];
    packet->last = (data[1] & SOLICITED) != 0;
    packet->dest_qpn = lh_get_be32(data + 4) & ROCE_QPN_MASK;
    packet->wqe_seq = lh_get_be32(data + 8) & XP_SEQ_MASK;
    packet->offset = lh_get_be64(data + OFFSET_AT);
    packet->key = lh_get_be32(data + KEY_AT);
    packet->immediate = lh_get_be32(data + IMM_AT);
    packet->length = lh_get_be32(data + LENGTH_AT);
    packet->deadline_us = lh_get_be32(data + DEADLINE_AT);
    packet->receive = lh_get_be16(data + RECEIVE_AT);
    packet->stride = lh_get_be16(data + STRIDE_AT);
    packet->payload = data + XP_HEADER_BYTES;
}

enum roce_verdict xp_decode(const uint8_t *data, size_t bytes, struct xp_packet *packet)
{
    struct xp_packet got;
    if (!header_valid(data, bytes))
        return ROCE_BAD_HEADER;
    decode_fields(data, &got);
    size_t padded = bytes - XP_OVERHEAD;
    size_t pad = data[1] >> PAD_SHIFT & 3;
    if (padded % 4 != 0 || pad > padded || padded - pad > ROCE_MTU_MAX)
        return ROCE_BAD_LENGTH;
    got.payload_bytes = (uint32_t)(padded - pad);
    if (!fits(&got))
        return ROCE_BAD_HEADER;
    if (got.payload_bytes > got.length && got.opcode != XP_READ_REQUEST && got.opcode != XP_NOTIFICATION)
        return ROCE_BAD_LENGTH;
    *packet = got;
    return ROCE_OK;
}
