/*
 * test_qp_info.c - the blob's layout, and every way to spoil it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/qp_info.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "support/plain_crc.h"

/* Written down by hand from the layout; the CRC is zlib's. */
static const uint8_t small_blob[] = {
    0x4c, 0x48, 0x4c, 0x31, 0x00, 0x01, 0x00, 0x58, 0x01, 0x06, 0x02, 0x01, 0x0a, 0x04, 0x01,
    0x00, 0xfd, 0x77, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x01, 0xa1, 0xb2, 0xc3, 0xd4, 0x00, 0x00, 0x00, 0x11, 0x12, 0xb7, 0x00, 0x00, 0x00,
    0x00, 0x10, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x40, 0x00, 0xc3, 0x51, 0xc3,
    0x52, 0x00, 0x10, 0x00, 0x00, 0x00, 0x10, 0x00, 0x01, 0xcb, 0xc2, 0x59, 0x58};

static struct qp_info small_info(void)
{
    return (struct qp_info){
        .endpoint = {.fabric = QP_INFO_UDP,
                     .family = 6,
                     .channels = 2,
                     .generations = 1,
                     .address = {0xfd, 0x77, [15] = 1},
                     .control_qpn = 0x11,
                     .control_port = 4791,
                     .channel_port = {50001, 50002},
                     .qpn = {{0x100000, 0x100001}},
                     .receive_buffer_bytes = 212992},
        .token = 0xA1B2C3D4,
        .mtu_bytes = 4096,
        .chunk_bytes = 65536,
        .slots = 1024,
        .slot_bytes = (uint64_t)1 << 30,
        .immediate_message_bits = 10,
        .immediate_fragment_bits = 4,
        .send_enable = 1,
        .recv_enable = 0,
    };
}

static struct qp_info large_info(void)
{
    struct qp_info info = small_info();
    info.wants_feedback = 1;
    info.credits = 200;
    info.endpoint.channels = QP_INFO_CHANNELS_MAX;
    info.endpoint.generations = QP_INFO_GENERATIONS_MAX;
    for (uint32_t c = 0; c < QP_INFO_CHANNELS_MAX; c++) {
        info.endpoint.channel_port[c] = (uint16_t)(1000 + c);
        for (uint32_t g = 0; g < QP_INFO_GENERATIONS_MAX; g++)
            info.endpoint.qpn[g][c] = 0xFF0000 + g * 256 + c;
    }
    return info;
}

/* The CRC-32 of all before it in the last four bytes. */
static void fix_crc(uint8_t *blob, size_t bytes)
{
    const uint32_t crc = plain_crc(0, blob, bytes - 4);
    for (int i = 0; i < 4; i++)
        blob[bytes - 4 + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
}

/* Refused with that code, and the output stays. Decodes a copy of exactly that size, so that a sanitizer
 * sees a read past the end. */
static void refuse(const uint8_t *blob, size_t bytes, int code)
{
    struct qp_info info = {.token = 4711};
    uint8_t *copy = malloc(bytes + (bytes == 0));
    memcpy(copy, blob, bytes);
    assert_int_equal(qp_info_decode(copy, bytes, &info), code);
    assert_int_equal(info.token, 4711);
    assert_true(strlen(lh_last_error()) > 20);
    free(copy);
}

static void assert_same(const struct qp_info *a, const struct qp_info *b)
{
    const struct qp_info_endpoint *x = &a->endpoint;
    const struct qp_info_endpoint *y = &b->endpoint;
    assert_true(x->fabric == y->fabric && x->family == y->family);
    assert_true(x->channels == y->channels && x->generations == y->generations);
    assert_memory_equal(x->address, y->address, sizeof x->address);
    assert_true(x->control_qpn == y->control_qpn && x->control_port == y->control_port);
    assert_memory_equal(x->channel_port, y->channel_port, sizeof x->channel_port);
    assert_memory_equal(x->qpn, y->qpn, sizeof x->qpn);
    assert_true(x->receive_buffer_bytes == y->receive_buffer_bytes);
    assert_true(a->token == b->token && a->mtu_bytes == b->mtu_bytes && a->chunk_bytes == b->chunk_bytes);
    assert_true(a->slots == b->slots && a->slot_bytes == b->slot_bytes);
    assert_int_equal(a->immediate_message_bits, b->immediate_message_bits);
    assert_int_equal(a->immediate_fragment_bits, b->immediate_fragment_bits);
    assert_true(a->send_enable == b->send_enable && a->recv_enable == b->recv_enable);
}

static void test_encodes_the_blob(void **state)
{
    (void)state;
    struct qp_info info = small_info();
    uint8_t out[QP_INFO_BYTES_MAX];
    assert_int_equal(qp_info_bytes(2, 1), sizeof small_blob);
    assert_int_equal(qp_info_encode(&info, out), sizeof small_blob);
    assert_memory_equal(out, small_blob, sizeof small_blob);
}

static void test_decodes_the_blob(void **state)
{
    (void)state;
    struct qp_info expected = small_info();
    struct qp_info info;
    assert_int_equal(qp_info_decode(small_blob, sizeof small_blob, &info), 0);
    assert_same(&info, &expected);
}

static void test_every_size_round_trips(void **state)
{
    (void)state;
    for (uint32_t channels = 1; channels <= QP_INFO_CHANNELS_MAX; channels++) {
        for (uint32_t generations = 1; generations <= QP_INFO_GENERATIONS_MAX; generations++) {
            struct qp_info info = large_info();
            struct qp_info back;
            uint8_t out[QP_INFO_BYTES_MAX];
            info.endpoint.channels = (uint8_t)channels;
            info.endpoint.generations = (uint8_t)generations;
            size_t bytes = qp_info_encode(&info, out);
            assert_int_equal(bytes, qp_info_bytes(channels, generations));
            assert_in_range(bytes, 1, QP_INFO_BYTES_MAX);
            assert_int_equal(qp_info_peek_bytes(out), bytes);
            assert_int_equal(qp_info_decode(out, bytes, &back), 0);
            for (uint32_t g = 0; g < generations; g++) {
                size_t used = channels * sizeof back.endpoint.qpn[0][0];
                assert_memory_equal(back.endpoint.qpn[g], info.endpoint.qpn[g], used);
            }
            assert_memory_equal(back.endpoint.channel_port, info.endpoint.channel_port, channels * 2);
        }
    }
}

static void test_truncated_at_each_byte_is_refused(void **state)
{
    (void)state;
    struct qp_info info = large_info();
    uint8_t out[QP_INFO_BYTES_MAX + 1] = {0};
    size_t bytes = qp_info_encode(&info, out);
    for (size_t cut = 0; cut < bytes; cut++)
        refuse(out, cut, -LH_EHANDSHAKE);
    refuse(out, bytes + 1, -LH_EHANDSHAKE);
}

static void test_each_flipped_bit_is_refused(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < 8 * sizeof small_blob; bit++) {
        uint8_t blob[sizeof small_blob];
        memcpy(blob, small_blob, sizeof blob);
        blob[bit / 8] ^= (uint8_t)(1u << bit % 8);
        bool is_version = bit / 8 == 4 || bit / 8 == 5;
        refuse(blob, sizeof blob, is_version ? -LH_EVERSION : -LH_EHANDSHAKE);
    }
}

static void test_other_version_is_told_apart(void **state)
{
    (void)state;
    uint8_t blob[sizeof small_blob];
    memcpy(blob, small_blob, sizeof blob);
    blob[5] = 2;
    fix_crc(blob, sizeof blob);
    refuse(blob, sizeof blob, -LH_EVERSION);
    assert_non_null(strstr(lh_last_error(), "version 2"));
    /* Though its length may be anything. */
    refuse(blob, 40, -LH_EVERSION);
}

static void test_peek(void **state)
{
    (void)state;
    uint8_t first[8];
    memcpy(first, small_blob, 8);
    assert_int_equal(qp_info_peek_bytes(first), sizeof small_blob);
    first[6] = QP_INFO_BYTES_MAX >> 8;
    first[7] = QP_INFO_BYTES_MAX & 0xFF;
    assert_int_equal(qp_info_peek_bytes(first), QP_INFO_BYTES_MAX);
    first[7]++;
    assert_int_equal(qp_info_peek_bytes(first), 0);
    first[6] = 0;
    first[7] = 8;
    assert_int_equal(qp_info_peek_bytes(first), 8);
    first[7] = 7;
    assert_int_equal(qp_info_peek_bytes(first), 0);
    first[7] = 100;
    first[0] ^= 1;
    assert_int_equal(qp_info_peek_bytes(first), 0);
}

/* The small blob with one field set, and a right CRC. */
static void patched(size_t at, size_t width, uint64_t value, uint8_t blob[sizeof small_blob])
{
    memcpy(blob, small_blob, sizeof small_blob);
    for (size_t i = 0; i < width; i++)
        blob[at + i] = (uint8_t)(value >> 8 * (width - 1 - i));
    fix_crc(blob, sizeof small_blob);
}

struct patch {
    size_t at;
    size_t width;
    uint64_t value;
};

static void test_impossible_fields_are_refused(void **state)
{
    (void)state;
    static const struct patch patches[] = {
        {6, 2, sizeof small_blob - 1},
        {6, 2, sizeof small_blob + 1},
        {8, 1, 0},
        {8, 1, QP_INFO_FABRICS_END},
        {9, 1, 0},
        {9, 1, 5},
        {9, 1, 4}, /* an IPv4 address of 16 bytes */
        {10, 1, 0},
        {10, 1, 1},
        {10, 1, 3},
        {10, 1, 33},
        {10, 1, 255},
        {11, 1, 0},
        {11, 1, 2},
        {11, 1, 9},
        {11, 1, 255},
        {12, 1, 0},
        {12, 1, 9}, /* 1024 slots need ten bits */
        {12, 1, 28},
        {12, 1, 255},
        {13, 1, 0},
        {13, 1, 3},
        {13, 1, 32},
        {13, 1, 255},
        {14, 1, 2},
        {15, 1, 255},
        {36, 4, 0x1000000},
        {40, 2, 0},
        {42, 1, 2},
        {44, 4, 255},
        {44, 4, 4097},
        {44, 4, 0},
        {48, 4, 0},
        {48, 4, 65537},
        {48, 4, 2048},
        {52, 4, 0},
        {52, 4, 1025},
        {52, 4, UINT32_MAX},
        {56, 8, 0},
        {56, 8, ((uint64_t)1 << 30) + 1}, /* 2^18 packets of 4096 bytes */
        {56, 8, UINT64_MAX},
        {72, 2, 0},
        {74, 2, 0},
        {76, 4, 0x1000000},
        {80, 4, UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof patches / sizeof patches[0]; i++) {
        uint8_t blob[sizeof small_blob];
        patched(patches[i].at, patches[i].width, patches[i].value, blob);
        refuse(blob, sizeof blob, -LH_EHANDSHAKE);
    }
}

static void test_fields_at_their_limits_are_taken(void **state)
{
    (void)state;
    static const struct patch patches[] = {
        {36, 4, 0},          {36, 4, 0xFFFFFF}, {40, 2, 1}, {40, 2, 65535},    {32, 4, 0},
        {32, 4, UINT32_MAX}, {48, 4, 4096},     {52, 4, 1}, {56, 8, 1},        {64, 8, 0},
        {64, 8, UINT64_MAX}, {72, 2, 65535},    {76, 4, 0}, {76, 4, 0xFFFFFF}, {14, 1, 0},
        {15, 1, 1},          {13, 1, 1},        {13, 1, 2},
    };
    for (size_t i = 0; i < sizeof patches / sizeof patches[0]; i++) {
        uint8_t blob[sizeof small_blob];
        struct qp_info info;
        patched(patches[i].at, patches[i].width, patches[i].value, blob);
        assert_int_equal(qp_info_decode(blob, sizeof blob, &info), 0);
    }
}

static void test_ports_matter_on_udp_only(void **state)
{
    (void)state;
    for (uint8_t fabric = QP_INFO_VERBS; fabric < QP_INFO_FABRICS_END; fabric++) {
        struct qp_info info = small_info();
        struct qp_info back;
        uint8_t out[QP_INFO_BYTES_MAX];
        info.endpoint.fabric = fabric;
        info.endpoint.control_port = 0;
        info.endpoint.channel_port[1] = 0;
        size_t bytes = qp_info_encode(&info, out);
        assert_int_equal(qp_info_decode(out, bytes, &back), 0);
        assert_same(&back, &info);
    }
}

static void test_ipv4(void **state)
{
    (void)state;
    struct qp_info info = small_info();
    struct qp_info back;
    uint8_t out[QP_INFO_BYTES_MAX];
    info.endpoint.family = 4;
    memset(info.endpoint.address, 0, 16);
    memcpy(info.endpoint.address, (const uint8_t[]){10, 77, 0, 1}, 4);
    size_t bytes = qp_info_encode(&info, out);
    assert_int_equal(qp_info_decode(out, bytes, &back), 0);
    assert_same(&back, &info);
    for (size_t i = 4; i < 16; i++) {
        info.endpoint.address[i] = 1;
        qp_info_encode(&info, out);
        refuse(out, bytes, -LH_EHANDSHAKE);
        info.endpoint.address[i] = 0;
    }
}

static void test_mtu_limits(void **state)
{
    (void)state;
    static const uint32_t mtus[] = {0, 63, 64, 8896, 8897};
    for (int i = 0; i < 5; i++) {
        struct qp_info info = small_info();
        struct qp_info back;
        uint8_t out[QP_INFO_BYTES_MAX];
        info.mtu_bytes = mtus[i];
        info.chunk_bytes = mtus[i] == 0 ? 4096 : mtus[i];
        info.slot_bytes = 1;
        size_t bytes = qp_info_encode(&info, out);
        if (i == 2 || i == 3)
            assert_int_equal(qp_info_decode(out, bytes, &back), 0);
        else
            refuse(out, bytes, -LH_EHANDSHAKE);
    }
}

/* Counts that take fewer bytes than there are, where every other field would do. */
static void test_length_must_be_that_of_the_counts(void **state)
{
    (void)state;
    struct qp_info info = small_info();
    uint8_t out[QP_INFO_BYTES_MAX];
    info.endpoint =
        (struct qp_info_endpoint){.fabric = QP_INFO_SIM, .family = 6, .channels = 2, .generations = 2};
    size_t bytes = qp_info_encode(&info, out);
    out[11] = 1;
    fix_crc(out, bytes);
    refuse(out, bytes, -LH_EHANDSHAKE);
    assert_non_null(strstr(lh_last_error(), "length"));
}

/* Too short for any counts, though length and CRC are right. Below 12 bytes the CRC would be the length. */
static void test_short_blobs_with_a_right_crc(void **state)
{
    (void)state;
    for (size_t bytes = 12; bytes < 82; bytes++) {
        uint8_t blob[sizeof small_blob];
        memcpy(blob, small_blob, sizeof blob);
        blob[7] = (uint8_t)bytes;
        fix_crc(blob, bytes);
        refuse(blob, bytes, -LH_EHANDSHAKE);
    }
}

static void test_error_names_the_cause(void **state)
{
    (void)state;
    uint8_t blob[sizeof small_blob];
    memcpy(blob, small_blob, sizeof blob);
    blob[0] ^= 1;
    refuse(blob, sizeof blob, -LH_EHANDSHAKE);
    assert_non_null(strstr(lh_last_error(), "begins with 0x"));
    refuse(small_blob, sizeof small_blob - 1, -LH_EHANDSHAKE);
    assert_non_null(strstr(lh_last_error(), "pass all bytes"));
}

/* 29 bits for the message, one for the fragment: two for the packet. */
static void test_slots_with_few_offset_bits(void **state)
{
    (void)state;
    struct qp_info info = small_info();
    struct qp_info back;
    uint8_t out[QP_INFO_BYTES_MAX];
    info.immediate_message_bits = 29;
    info.immediate_fragment_bits = 1;
    info.slots = (uint32_t)1 << 29;
    info.slot_bytes = 4096 * 4;
    size_t bytes = qp_info_encode(&info, out);
    assert_int_equal(qp_info_decode(out, bytes, &back), 0);
    info.slot_bytes++;
    qp_info_encode(&info, out);
    refuse(out, bytes, -LH_EHANDSHAKE);
    /* No room for an offset, or for a message. */
    info.slots = 1;
    info.slot_bytes = 1;
    static const uint8_t splits[][2] = {{31, 1}, {30, 2}, {0, 4}};
    for (int i = 0; i < 3; i++) {
        info.immediate_message_bits = splits[i][0];
        info.immediate_fragment_bits = splits[i][1];
        qp_info_encode(&info, out);
        refuse(out, bytes, -LH_EHANDSHAKE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encodes_the_blob),
        cmocka_unit_test(test_decodes_the_blob),
        cmocka_unit_test(test_every_size_round_trips),
        cmocka_unit_test(test_truncated_at_each_byte_is_refused),
        cmocka_unit_test(test_each_flipped_bit_is_refused),
        cmocka_unit_test(test_other_version_is_told_apart),
        cmocka_unit_test(test_peek),
        cmocka_unit_test(test_impossible_fields_are_refused),
        cmocka_unit_test(test_fields_at_their_limits_are_taken),
        cmocka_unit_test(test_ports_matter_on_udp_only),
        cmocka_unit_test(test_ipv4),
        cmocka_unit_test(test_mtu_limits),
        cmocka_unit_test(test_length_must_be_that_of_the_counts),
        cmocka_unit_test(test_short_blobs_with_a_right_crc),
        cmocka_unit_test(test_error_names_the_cause),
        cmocka_unit_test(test_slots_with_few_offset_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
