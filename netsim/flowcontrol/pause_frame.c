/*
 * pause_frame.c - the MAC control frame of priority flow control (IEEE 802.3, annex 31D; 802.1Qbb).
 *
 * destination 6 | source 6 | type 2 | opcode 2 | enabled 2 | times 8 x 2 | pad 26 | frame check sequence 4
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/flowcontrol.h>

#include <string.h>

#include <isa-l/crc.h>

#include "base/big_endian.h"
#include "base/error.h"

#define TYPE_MAC_CONTROL 0x8808u
#define OPCODE_PFC       0x0101u

#define SOURCE_AT  6u
#define TYPE_AT    12u
#define OPCODE_AT  14u
#define ENABLED_AT 16u
#define TIMES_AT   18u
#define CHECK_AT   (LH_PFC_FRAME_BYTES - 4u)

/* Bridges do not forward what goes there. */
static const uint8_t destination[SOURCE_AT] = {0x01, 0x80, 0xC2, 0x00, 0x00, 0x01};

/* Ethernet's CRC goes out with the lowest byte first. */
static void check_sequence(const uint8_t *frame, uint8_t out[4])
{
    uint32_t crc = crc32_gzip_refl(0, frame, CHECK_AT);
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(crc >> 8 * i);
}

void lh_pfc_frame_encode(const struct lh_pfc_frame *frame, uint8_t out[LH_PFC_FRAME_BYTES])
{
    memset(out, 0, LH_PFC_FRAME_BYTES);
    memcpy(out, destination, sizeof destination);
    memcpy(out + SOURCE_AT, frame->source, sizeof frame->source);
    lh_put_be16(out + TYPE_AT, TYPE_MAC_CONTROL);
    lh_put_be16(out + OPCODE_AT, OPCODE_PFC);
    lh_put_be16(out + ENABLED_AT, frame->enabled);
    for (unsigned p = 0; p < LH_PFC_PRIORITIES; p++)
        if ((frame->enabled >> p & 1) != 0)
            lh_put_be16(out + TIMES_AT + 2 * p, frame->quanta[p]);
    check_sequence(out, out + CHECK_AT);
}

static int check(const uint8_t *data, size_t bytes)
{
    uint8_t sequence[4];
    /* MAC control frames have one length; there is nothing behind the padding. */
    if (bytes != LH_PFC_FRAME_BYTES)
        return lh_fail(LH_EPROTOCOL, "a pause frame of %zu bytes: it has %u, with its check sequence",
                       bytes, LH_PFC_FRAME_BYTES);
    if (memcmp(data, destination, sizeof destination) != 0)
        return lh_fail(LH_EPROTOCOL, "a pause frame goes to 01:80:c2:00:00:01, and this one does not");
    if (lh_get_be16(data + TYPE_AT) != TYPE_MAC_CONTROL)
        return lh_fail(LH_EPROTOCOL, "type 0x%04x: MAC control has 0x%04x", lh_get_be16(data + TYPE_AT),
                       TYPE_MAC_CONTROL);
    if (lh_get_be16(data + OPCODE_AT) != OPCODE_PFC)
        return lh_fail(LH_EPROTOCOL, "opcode 0x%04x: priority flow control has 0x%04x",
                       lh_get_be16(data + OPCODE_AT), OPCODE_PFC);
    check_sequence(data, sequence);
    if (memcmp(data + CHECK_AT, sequence, sizeof sequence) != 0)
        return lh_fail(LH_EPROTOCOL, "the frame check sequence of a pause frame is wrong (drop it)");
    return 0;
}

int lh_pfc_frame_decode(const uint8_t *data, size_t bytes, struct lh_pfc_frame *frame)
{
    int rc = check(data, bytes);
    if (rc != 0)
        return rc;
    memcpy(frame->source, data + SOURCE_AT, sizeof frame->source);
    frame->enabled = data[ENABLED_AT + 1]; /* the upper byte is reserved and not looked at */
    for (unsigned p = 0; p < LH_PFC_PRIORITIES; p++) {
        bool enabled = (frame->enabled >> p & 1) != 0;
        frame->quanta[p] = enabled ? lh_get_be16(data + TIMES_AT + 2 * (size_t)p) : 0;
    }
    return 0;
}

uint32_t lh_pfc_quanta(uint64_t bytes)
{
    uint64_t quanta = bytes / LH_PFC_QUANTUM_BYTES + (bytes % LH_PFC_QUANTUM_BYTES != 0);
    return quanta < LH_PFC_QUANTA_MAX ? (uint32_t)quanta : LH_PFC_QUANTA_MAX;
}

uint32_t lh_pfc_part(uint32_t quanta, uint32_t *after)
{
    bool all = quanta <= LH_PFC_QUANTA_MAX;
    *after = all ? 0 : LH_PFC_QUANTA_MAX / 2;
    return all ? quanta : LH_PFC_QUANTA_MAX;
}
