/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/selective_repeat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_mark_bytes(void **state)
{
    (void)state;
    static const uint8_t expected[SR_MARK_BYTES] = {1,    1,    0,    0,    0x01, 0x02,
                                                    0x03, 0x04, 0x0a, 0x0b, 0x0c, 0x0d};
    struct sr_mark mark = {.flags = SR_FLAG_PROBE, .mark = 0x01020304, .sent_through = 0x0a0b0c0d};
    uint8_t bytes[SR_MARK_BYTES];
    assert_int_equal(sr_mark_encode(&mark, bytes), SR_MARK_BYTES);
    assert_memory_equal(bytes, expected, sizeof(expected));
    struct sr_mark read;
    assert_int_equal(sr_mark_decode(bytes, sizeof(bytes), &read), 0);
    assert_int_equal(read.flags, SR_FLAG_PROBE);
    assert_int_equal(read.mark, 0x01020304);
    assert_int_equal(read.sent_through, 0x0a0b0c0d);
}

static void test_impossible_marks_are_refused(void **state)
{
    (void)state;
    struct sr_mark mark = {.mark = 1};
    uint8_t good[SR_MARK_BYTES + 1] = {0};
    sr_mark_encode(&mark, good);
    struct sr_mark read;
    for (size_t bytes = 0; bytes <= sizeof(good); bytes++)
        assert_int_equal(sr_mark_decode(good, bytes, &read), bytes == SR_MARK_BYTES ? 0 : -1);
    static const struct {
        size_t at;
        uint8_t value;
    } bad[] = {{0, 2}, {0, 0}, {1, 2}, {1, 0x80}, {2, 1}, {3, 1}, {7, 0} /* no MARK has number 0 */};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        uint8_t bytes[SR_MARK_BYTES];
        memcpy(bytes, good, sizeof(bytes));
        bytes[bad[i].at] = bad[i].value;
        assert_int_equal(sr_mark_decode(bytes, sizeof(bytes), &read), -1);
    }
}

static void test_ack_bytes(void **state)
{
    (void)state;
    static const uint8_t expected[] = {2,  1,  0,    1,    0,    0,    0,    5,    0,    0,   0,
                                       70, 0,  0,    0,    128,  0,    0,    0,    150,  0,   0,
                                       0,  71, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08};
    struct sr_ack ack = {.flags = SR_FLAG_NACK,
                         .mark = 5,
                         .cumulative = 70,
                         .base = 128,
                         .horizon = 150,
                         .arrived = 71,
                         .words = 1,
                         .bitmap = {0x0102030405060708}};
    uint8_t bytes[SR_ACK_BYTES_MAX];
    assert_int_equal(sr_ack_encode(&ack, bytes), sizeof(expected));
    assert_memory_equal(bytes, expected, sizeof(expected));
    struct sr_ack read = {0};
    assert_int_equal(sr_ack_decode(bytes, sizeof(expected), &read), 0);
    assert_memory_equal(&read, &ack, sizeof(ack));
}

static void test_every_number_of_words(void **state)
{
    (void)state;
    struct sr_ack ack = {0};
    for (uint16_t i = 0; i < SR_ACK_WORDS_MAX; i++)
        ack.bitmap[i] = (uint64_t)i << 40 | 0x5a;
    for (ack.words = 0; ack.words <= SR_ACK_WORDS_MAX; ack.words++) {
        uint8_t bytes[SR_ACK_BYTES_MAX];
        size_t size = sr_ack_encode(&ack, bytes);
        assert_int_equal(size, SR_ACK_BYTES + 8 * (size_t)ack.words);
        struct sr_ack read;
        assert_int_equal(sr_ack_decode(bytes, size, &read), 0);
        assert_memory_equal(read.bitmap, ack.bitmap, ack.words * sizeof(uint64_t));
        assert_int_equal(sr_ack_decode(bytes, size - 1, &read), -1);
        if (size < sizeof(bytes))
            assert_int_equal(sr_ack_decode(bytes, size + 1, &read), -1);
    }
}

static void put32(uint8_t *out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* One field of a good ACK set to a value; returns what decoding says. */
static int decode_with(size_t at, uint32_t value)
{
    struct sr_ack ack = {.cumulative = 64, .base = 64, .arrived = 64, .words = 2};
    uint8_t bytes[SR_ACK_BYTES_MAX];
    size_t size = sr_ack_encode(&ack, bytes);
    put32(bytes + at, value);
    struct sr_ack read;
    return sr_ack_decode(bytes, size, &read);
}

static void test_impossible_acks_are_refused(void **state)
{
    (void)state;
    assert_int_equal(decode_with(0, 0x02000002), 0);
    assert_int_equal(decode_with(0, 0x01000002), -1); /* kind */
    assert_int_equal(decode_with(0, 0x02020002), -1); /* flag */
    assert_int_equal(decode_with(0, 0x02000001), -1); /* words against length */
    assert_int_equal(decode_with(0, 0x0200ffff), -1);
    assert_int_equal(decode_with(12, 128), 0);
    assert_int_equal(decode_with(12, 127), -1); /* base within a word */
    assert_int_equal(decode_with(12, 0), -1);   /* base before cumulative's word */
    assert_int_equal(decode_with(12, (UINT32_MAX - 64 * SR_ACK_WORDS_MAX) / 64 * 64), 0);
    assert_int_equal(decode_with(12, UINT32_MAX / 64 * 64), -1); /* chunk numbers beyond 32 bits */
    assert_int_equal(decode_with(20, 63), -1);                   /* fewer arrived than in a row */
    assert_int_equal(decode_with(16, UINT32_MAX), 0); /* any horizon: the sender knows what it sent */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mark_bytes),
        cmocka_unit_test(test_impossible_marks_are_refused),
        cmocka_unit_test(test_ack_bytes),
        cmocka_unit_test(test_every_number_of_words),
        cmocka_unit_test(test_impossible_acks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
