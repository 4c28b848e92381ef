/*
 * test_xp_header.c - packets of the XP transport: there and back, and nothing else is one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/xp_header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static uint8_t wire[XP_OVERHEAD + ROCE_MTU_MAX];

static size_t encode(const struct xp_packet *packet)
{
    memset(wire, 0, sizeof wire);
    xp_encode_header(packet, wire);
    if (packet->payload_bytes)
        memcpy(wire + XP_HEADER_BYTES, packet->payload, packet->payload_bytes);
    return XP_OVERHEAD + packet->payload_bytes + roce_pad_bytes(packet->payload_bytes);
}

static const uint8_t data[5] = {1, 2, 3, 4, 5};

/* The least that each kind has. */
static struct xp_packet example(enum xp_opcode opcode)
{
    struct xp_packet packet = {.opcode = opcode, .dest_qpn = 0x123456, .wqe_seq = 0xABCDEF};
    if (opcode == XP_NOTIFICATION)
        return packet;
    packet.offset = 0x1122334455667788;
    packet.length = 77;
    if (opcode == XP_READ_REQUEST) {
        packet.key = 9;
        packet.deadline_us = 1000;
        return packet;
    }
    packet.last = true;
    packet.stride = 64;
    packet.payload = data;
    packet.payload_bytes = sizeof data;
    if (opcode == XP_WRITE || opcode == XP_WRITE_IMM)
        packet.key = 0xDEADBEEF;
    if (opcode == XP_WRITE_IMM)
        packet.immediate = 0xCAFE;
    if (opcode == XP_SEND || opcode == XP_WRITE_IMM)
        packet.receive = 0xFFFE;
    return packet;
}

static void test_there_and_back(void **state)
{
    (void)state;
    for (int opcode = XP_OPCODE_FIRST; opcode <= XP_OPCODE_LAST; opcode++) {
        struct xp_packet sent = example((enum xp_opcode)opcode), got;
        size_t bytes = encode(&sent);
        assert_int_equal(bytes % 4, 0);
        assert_int_equal(xp_decode(wire, bytes, &got), ROCE_OK);
        assert_int_equal(got.payload_bytes, sent.payload_bytes);
        assert_memory_equal(got.payload, data, got.payload_bytes);
        uint8_t again[XP_HEADER_BYTES];
        xp_encode_header(&got, again);
        assert_memory_equal(again, wire, sizeof again);
    }
}

static void test_bytes(void **state)
{
    (void)state;
    static const uint8_t header[XP_HEADER_BYTES] = {
        0xC2, 0xB0, 0xFF, 0xFF, 0,    0x12, 0x34, 0x56, 0,    0xAB, 0xCD, 0xEF, 0x11, 0x22,
        0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xDE, 0xAD, 0xBE, 0xEF, 0,    0,    0xCA, 0xFE,
        0,    0,    0,    77,   0,    0,    0,    0,    0xFF, 0xFE, 0,    64};
    struct xp_packet packet = example(XP_WRITE_IMM);
    encode(&packet);
    assert_memory_equal(wire, header, sizeof header);
}

static void assert_refused(const struct xp_packet *packet, enum roce_verdict verdict)
{
    struct xp_packet got;
    assert_int_equal(xp_decode(wire, encode(packet), &got), verdict);
}

/* What a kind does not have must not be there. */
static void test_foreign_fields(void **state)
{
    (void)state;
    for (int opcode = XP_OPCODE_FIRST; opcode <= XP_OPCODE_LAST; opcode++) {
        struct xp_packet packet = example((enum xp_opcode)opcode);
        if (packet.deadline_us == 0) {
            packet.deadline_us = 1;
            assert_refused(&packet, ROCE_BAD_HEADER);
        }
        packet = example((enum xp_opcode)opcode);
        if (packet.immediate == 0) {
            packet.immediate = 1;
            assert_refused(&packet, ROCE_BAD_HEADER);
        }
        packet = example((enum xp_opcode)opcode);
        if (packet.receive == 0) {
            packet.receive = 1;
            assert_refused(&packet, ROCE_BAD_HEADER);
        }
        packet = example((enum xp_opcode)opcode);
        if (packet.payload_bytes == 0) {
            packet.payload = data;
            packet.payload_bytes = 1;
            assert_refused(&packet, ROCE_BAD_HEADER);
        }
    }
}

static void test_lengths(void **state)
{
    (void)state;
    struct xp_packet packet = example(XP_SEND), got;
    size_t bytes = encode(&packet);
    for (size_t cut = 0; cut < bytes; cut++)
        assert_int_not_equal(xp_decode(wire, cut, &got) == ROCE_OK && got.payload_bytes == 5, true);
    packet.length = 4; /* of 5 bytes of payload */
    assert_refused(&packet, ROCE_BAD_LENGTH);
    assert_int_equal(xp_decode(wire, sizeof wire + 4, &got), ROCE_BAD_LENGTH);
    packet = example(XP_SEND);
    encode(&packet);
    wire[1] |= 1; /* another version */
    assert_int_equal(xp_decode(wire, bytes, &got), ROCE_BAD_HEADER);
    encode(&packet);
    wire[2] = 0; /* another partition */
    assert_int_equal(xp_decode(wire, bytes, &got), ROCE_BAD_HEADER);
    encode(&packet);
    wire[0] = 0x2A; /* RoCE's own */
    assert_int_equal(xp_decode(wire, bytes, &got), ROCE_BAD_HEADER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_foreign_fields),
        cmocka_unit_test(test_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
