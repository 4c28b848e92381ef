/*
 * test_roce.c - packets against those of the Linux kernel, and every way to be no packet.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/roce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/roce_vectors.h"

static void test_header_sizes(void **state)
{
    (void)state;
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        size_t expected = opcode == 0x24   ? 12
                          : opcode == 0x2A ? 28
                          : opcode == 0x2B ? 32
                          : opcode == 0x81 ? 28
                                           : 0;
        assert_int_equal(roce_header_bytes((uint8_t)opcode), expected);
    }
}

static void test_pad(void **state)
{
    (void)state;
    static const uint32_t expected[] = {0, 3, 2, 1, 0, 3};
    for (uint32_t bytes = 0; bytes < 6; bytes++)
        assert_int_equal(roce_pad_bytes(bytes), expected[bytes]);
    assert_int_equal(roce_pad_bytes(4095), 1);
}

static void test_encodes_the_vectors(void **state)
{
    (void)state;
    for (int i = 0; i < ROCE_VECTORS; i++) {
        const struct roce_vector *vector = &roce_vectors[i];
        uint8_t header[32];
        assert_int_equal(roce_encode_header(&vector->packet, header), 32);
        /* Soft-RoCE leaves M clear. */
        header[1] = (uint8_t)(header[1] ^ (vector->ours ? 0 : 0x40));
        assert_memory_equal(header, vector->bytes, 32);
    }
}

static void assert_same_packet(const struct roce_packet *a, const struct roce_packet *b)
{
    assert_int_equal(a->opcode, b->opcode);
    assert_int_equal(a->dest_qpn, b->dest_qpn);
    assert_int_equal(a->psn, b->psn);
    assert_true(a->va == b->va);
    assert_int_equal(a->rkey, b->rkey);
    assert_int_equal(a->immediate, b->immediate);
    assert_int_equal(a->payload_bytes, b->payload_bytes);
    assert_memory_equal(a->payload, b->payload, a->payload_bytes);
}

static void test_decodes_the_vectors(void **state)
{
    (void)state;
    for (int i = 0; i < ROCE_VECTORS; i++) {
        const struct roce_vector *vector = &roce_vectors[i];
        struct roce_packet packet;
        assert_int_equal(roce_decode(vector->bytes, vector->length, &packet), ROCE_OK);
        assert_same_packet(&packet, &vector->packet);
        assert_ptr_equal(packet.payload, vector->bytes + 32);
    }
}

/* Encodes header and payload bytes 0, 1, 2 …, with pad and room for the iCRC; returns the size. */
static size_t build(struct roce_packet packet, uint8_t out[ROCE_PACKET_MAX])
{
    memset(out, 0, ROCE_PACKET_MAX);
    size_t header = roce_encode_header(&packet, out);
    for (uint32_t i = 0; i < packet.payload_bytes; i++)
        out[header + i] = (uint8_t)i;
    return header + packet.payload_bytes + roce_pad_bytes(packet.payload_bytes) + ROCE_ICRC_BYTES;
}

static struct roce_packet write_imm(uint32_t payload_bytes)
{
    return (struct roce_packet){.opcode = ROCE_UC_WRITE_ONLY_IMM,
                                .dest_qpn = ROCE_QPN_MASK,
                                .psn = ROCE_PSN_MASK,
                                .va = UINT64_MAX - 1,
                                .rkey = UINT32_MAX,
                                .immediate = 0x80000001,
                                .payload_bytes = payload_bytes};
}

static void test_every_opcode_and_length_round_trips(void **state)
{
    (void)state;
    static const enum roce_opcode opcodes[] = {ROCE_UC_SEND_ONLY, ROCE_UC_WRITE_ONLY,
                                               ROCE_UC_WRITE_ONLY_IMM};
    static uint8_t bytes[ROCE_PACKET_MAX];
    for (int o = 0; o < 3; o++) {
        for (uint32_t length = 0; length <= ROCE_MTU_MAX; length += length < 70 || length > 4090 ? 1 : 61) {
            struct roce_packet packet = write_imm(length);
            struct roce_packet decoded;
            packet.opcode = opcodes[o];
            packet.va = opcodes[o] == ROCE_UC_SEND_ONLY ? 0 : packet.va;
            packet.rkey = opcodes[o] == ROCE_UC_SEND_ONLY ? 0 : packet.rkey;
            packet.immediate = opcodes[o] == ROCE_UC_WRITE_ONLY_IMM ? packet.immediate : 0;
            size_t size = build(packet, bytes);
            packet.payload = bytes + roce_header_bytes((uint8_t)opcodes[o]);
            assert_int_equal(roce_decode(bytes, size, &decoded), ROCE_OK);
            assert_same_packet(&decoded, &packet);
        }
    }
}

/* Refused with that verdict, and the packet stays as it was. */
static void refuse(const uint8_t *bytes, size_t size, enum roce_verdict verdict)
{
    struct roce_packet packet = {.dest_qpn = 4711};
    /* A copy of exactly that size, so that a sanitizer sees a read past the end. */
    uint8_t *copy = test_malloc(size + (size == 0));
    memcpy(copy, bytes, size);
    assert_int_equal(roce_decode(copy, size, &packet), verdict);
    assert_int_equal(packet.dest_qpn, 4711);
    test_free(copy);
}

static void test_shorter_and_longer_is_refused(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {0, 1, 4, 5, 64};
    uint8_t bytes[ROCE_PACKET_MAX];
    for (int i = 0; i < 5; i++) {
        size_t size = build(write_imm(lengths[i]), bytes);
        for (size_t cut = 0; cut < size; cut++)
            refuse(bytes, cut, cut < 36 ? ROCE_BAD_HEADER : ROCE_BAD_LENGTH);
        for (size_t more = size + 1; more < size + 9; more++)
            refuse(bytes, more, ROCE_BAD_LENGTH);
    }
}

static void test_short_send_is_refused(void **state)
{
    (void)state;
    struct roce_packet packet = {.opcode = ROCE_UC_SEND_ONLY, .payload_bytes = 0};
    uint8_t bytes[ROCE_PACKET_MAX];
    assert_int_equal(build(packet, bytes), 16);
    assert_int_equal(roce_decode(bytes, 16, &packet), ROCE_OK);
    for (size_t cut = 0; cut < 16; cut++)
        refuse(bytes, cut, ROCE_BAD_HEADER);
    for (size_t more = 17; more < 20; more++)
        refuse(bytes, more, ROCE_BAD_LENGTH);
    /* A pad of one byte that is not there. */
    bytes[1] |= 0x10;
    refuse(bytes, 16, ROCE_BAD_LENGTH);
}

/* As a ConnectX NIC sends it, which leaves M clear (NVIDIA, "RoCEv2 CNP Packet Format Example"). */
static void test_congestion_notification(void **state)
{
    (void)state;
    uint8_t bytes[ROCE_PACKET_MAX] = {0x81, 0, 0xFF, 0xFF, 0x40, 0, 0, 0xD2};
    memcpy(bytes + 28, (uint8_t[]){0xE4, 0x2D, 0xAD, 0x81}, 4);
    struct roce_packet packet;
    assert_int_equal(roce_decode(bytes, ROCE_CNP_BYTES, &packet), ROCE_OK);
    assert_int_equal(packet.opcode, ROCE_CNP);
    assert_int_equal(packet.dest_qpn, 0xD2);
    assert_int_equal(packet.psn, 0);
    assert_int_equal(packet.payload_bytes, 0);
    uint8_t header[32];
    assert_int_equal(roce_encode_header(&packet, header), 28);
    assert_int_equal(header[1], 0x40);
    header[1] = 0;
    assert_memory_equal(header, bytes, 28);
    /* Congestion bits are covered by no check; reserved bytes are ignored, as the specification says. */
    bytes[4] = 0x80;
    memset(bytes + 12, 0xFF, 16);
    assert_int_equal(roce_decode(bytes, ROCE_CNP_BYTES, &packet), ROCE_OK);
    for (size_t cut = 0; cut < ROCE_CNP_BYTES; cut++)
        refuse(bytes, cut, ROCE_BAD_HEADER);
    for (size_t more = ROCE_CNP_BYTES + 1; more < ROCE_CNP_BYTES + 9; more++)
        refuse(bytes, more, ROCE_BAD_LENGTH);
    bytes[1] = 0x30; /* four bytes more, three of them pad */
    refuse(bytes, ROCE_CNP_BYTES + 4, ROCE_BAD_LENGTH);
}

static void test_unknown_opcodes(void **state)
{
    (void)state;
    uint8_t bytes[ROCE_PACKET_MAX];
    size_t size = build(write_imm(8), bytes);
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        bytes[0] = (uint8_t)opcode;
        if (opcode != 0x24 && opcode != 0x2A && opcode != 0x2B && opcode != 0x81)
            refuse(bytes, size, ROCE_BAD_HEADER);
    }
}

static void test_header_bits(void **state)
{
    (void)state;
    uint8_t bytes[ROCE_PACKET_MAX];
    struct roce_packet packet;
    size_t size = build(write_imm(8), bytes);
    /* Solicited event, M, congestion bits, acknowledge request: none is our business. */
    bytes[1] ^= 0xC0;
    bytes[4] = 0xFF;
    bytes[8] = 0xFF;
    assert_int_equal(roce_decode(bytes, size, &packet), ROCE_OK);
    for (unsigned version = 1; version < 16; version++) {
        bytes[1] = (uint8_t)version;
        refuse(bytes, size, ROCE_BAD_HEADER);
    }
}

static void test_partition_key(void **state)
{
    (void)state;
    static const uint8_t bad[][2] = {{0x80, 0x01}, {0x00, 0x00}, {0xFF, 0xFE}, {0x7F, 0xFE}, {0xFE, 0xFF}};
    uint8_t bytes[ROCE_PACKET_MAX];
    struct roce_packet packet;
    size_t size = build(write_imm(8), bytes);
    bytes[2] = 0x7F; /* a limited member of the default partition */
    assert_int_equal(roce_decode(bytes, size, &packet), ROCE_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memcpy(bytes + 2, bad[i], 2);
        refuse(bytes, size, ROCE_BAD_HEADER);
    }
}

static void test_dma_length_must_be_the_payload(void **state)
{
    (void)state;
    uint8_t bytes[ROCE_PACKET_MAX];
    size_t size = build(write_imm(8), bytes);
    static const uint8_t wrong[][4] = {
        {0, 0, 0, 7}, {0, 0, 0, 9}, {0, 0, 0, 0}, {1, 0, 0, 8}, {0x80, 0, 0, 8}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        memcpy(bytes + 24, wrong[i], 4);
        refuse(bytes, size, ROCE_BAD_LENGTH);
    }
}

static void test_wrong_pad_counts(void **state)
{
    (void)state;
    uint8_t bytes[ROCE_PACKET_MAX];
    for (uint32_t length = 4; length < 8; length++) {
        size_t size = build(write_imm(length), bytes);
        uint8_t right = bytes[1];
        for (unsigned pad = 0; pad < 4; pad++) {
            bytes[1] = (uint8_t)((right & 0xCF) | pad << 4);
            if (bytes[1] != right)
                refuse(bytes, size, ROCE_BAD_LENGTH);
        }
    }
}

static void test_payload_over_the_largest_mtu(void **state)
{
    (void)state;
    static uint8_t bytes[ROCE_PACKET_MAX];
    struct roce_packet packet;
    size_t size = build(write_imm(ROCE_MTU_MAX), bytes);
    assert_int_equal(roce_decode(bytes, size, &packet), ROCE_OK);
    /* As many more bytes as a pad count of 3 hides, and then four. */
    bytes[24 + 2] = 0x10;
    bytes[24 + 3] = 1;
    bytes[1] |= 0x30;
    refuse(bytes, size + 4, ROCE_BAD_LENGTH);
    bytes[24 + 3] = 4;
    bytes[1] &= 0xCF;
    refuse(bytes, size + 4, ROCE_BAD_LENGTH);
    /* A send is as long on the wire as a write with immediate may be. */
    packet = (struct roce_packet){.opcode = ROCE_UC_SEND_ONLY, .payload_bytes = ROCE_MTU_MAX + 20};
    size = build(packet, bytes);
    assert_int_equal(roce_decode(bytes, size, &packet), ROCE_OK);
    refuse(bytes, size + 4, ROCE_BAD_LENGTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_sizes),
        cmocka_unit_test(test_pad),
        cmocka_unit_test(test_encodes_the_vectors),
        cmocka_unit_test(test_decodes_the_vectors),
        cmocka_unit_test(test_every_opcode_and_length_round_trips),
        cmocka_unit_test(test_shorter_and_longer_is_refused),
        cmocka_unit_test(test_short_send_is_refused),
        cmocka_unit_test(test_congestion_notification),
        cmocka_unit_test(test_unknown_opcodes),
        cmocka_unit_test(test_header_bits),
        cmocka_unit_test(test_partition_key),
        cmocka_unit_test(test_dma_length_must_be_the_payload),
        cmocka_unit_test(test_wrong_pad_counts),
        cmocka_unit_test(test_payload_over_the_largest_mtu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
