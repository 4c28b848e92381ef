/*
 * test_scheme_messages.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/scheme_messages.h"

/* ---- test bounded completion ----------------------------------------------------------------------- */

static void test_bytes(void **state)
{
    (void)state;
    static const uint8_t expected[BOUNDED_MESSAGE_BYTES] = {2, 0, 0, 0, 0x0a, 0x0b, 0x0c, 0x0d};
    const struct bounded_message ack = {BOUNDED_ACK, 0x0a0b0c0d};
    struct bounded_message read;
    uint8_t bytes[BOUNDED_MESSAGE_BYTES];
    assert_int_equal(bounded_message_encode(&ack, bytes), sizeof bytes);
    assert_memory_equal(bytes, expected, sizeof bytes);
    assert_int_equal(bounded_message_decode(bytes, sizeof bytes, &read), 0);
    assert_int_equal(read.kind, BOUNDED_ACK);
    assert_int_equal(read.place, 0x0a0b0c0d);
}

static void test_impossible_ones_are_refused(void **state)
{
    (void)state;
    uint8_t bytes[BOUNDED_MESSAGE_BYTES + 1] = {BOUNDED_END};
    struct bounded_message read;
    for (size_t n = 0; n <= sizeof bytes; n++)
        assert_int_equal(bounded_message_decode(bytes, n, &read), n == BOUNDED_MESSAGE_BYTES ? 0 : -1);
    for (uint32_t at = 0; at < 4; at++) {
        uint8_t bad[BOUNDED_MESSAGE_BYTES] = {BOUNDED_END};
        bad[at] ^= 0x82;
        assert_int_equal(bounded_message_decode(bad, sizeof bad, &read), -1);
    }
    bytes[0] = 0;
    assert_int_equal(bounded_message_decode(bytes, BOUNDED_MESSAGE_BYTES, &read), -1);
}

static int run_bounded_completion(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_impossible_ones_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test erasure coding --------------------------------------------------------------------------- */

/* One byte of a good message made bad. */
struct change {
    size_t at;
    uint8_t value;
};

static void test_mark(void **state)
{
    (void)state;
    static const uint8_t expected[EC_MARK_BYTES] = {1, 3, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    struct ec_mark mark = {.flags = EC_FLAG_PROBE | EC_FLAG_END,
                           .mark = 0x01020304,
                           .round = 0x05060708,
                           .injected = 0x090a0b0c};
    uint8_t bytes[EC_MARK_BYTES + 1] = {0};
    assert_int_equal(ec_mark_encode(&mark, bytes), EC_MARK_BYTES);
    assert_memory_equal(bytes, expected, sizeof(expected));
    struct ec_mark read;
    for (size_t size = 0; size <= sizeof(bytes); size++)
        assert_int_equal(ec_mark_decode(bytes, size, &read), size == EC_MARK_BYTES ? 0 : -1);
    assert_int_equal(ec_mark_decode(bytes, EC_MARK_BYTES, &read), 0);
    assert_int_equal(read.flags, mark.flags);
    assert_int_equal(read.mark, mark.mark);
    assert_int_equal(read.round, mark.round);
    assert_int_equal(read.injected, mark.injected);
    static const struct change bad[] = {{0, 2}, {1, 4}, {1, 0x80}, {2, 1}, {3, 1}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        memcpy(bytes, expected, sizeof(expected));
        bytes[bad[i].at] = bad[i].value;
        assert_int_equal(ec_mark_decode(bytes, EC_MARK_BYTES, &read), -1);
    }
    memcpy(bytes, expected, sizeof(expected));
    memset(bytes + 4, 0, 4);
    assert_int_equal(ec_mark_decode(bytes, EC_MARK_BYTES, &read), -1); /* no MARK has number 0 */
}

static void test_ack(void **state)
{
    (void)state;
    static const uint8_t expected[EC_ACK_BYTES] = {2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    struct ec_ack ack = {.mark = 0x01020304, .injected = 0x05060708, .arrived = 0x090a0b0c};
    uint8_t bytes[EC_ACK_BYTES + 1] = {0};
    assert_int_equal(ec_ack_encode(&ack, bytes), EC_ACK_BYTES);
    assert_memory_equal(bytes, expected, sizeof(expected));
    struct ec_ack read;
    for (size_t size = 0; size <= sizeof(bytes); size++)
        assert_int_equal(ec_ack_decode(bytes, size, &read), size == EC_ACK_BYTES ? 0 : -1);
    assert_int_equal(ec_ack_decode(bytes, EC_ACK_BYTES, &read), 0);
    assert_memory_equal(&read, &ack, sizeof(ack));
    static const struct change bad[] = {{0, 1}, {1, 1}, {2, 1}, {3, 1}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        memcpy(bytes, expected, sizeof(expected));
        bytes[bad[i].at] = bad[i].value;
        assert_int_equal(ec_ack_decode(bytes, EC_ACK_BYTES, &read), -1);
    }
    memcpy(bytes, expected, sizeof(expected));
    memset(bytes + 4, 0, 4);
    assert_int_equal(ec_ack_decode(bytes, EC_ACK_BYTES, &read), -1); /* of no MARK, yet it said something */
}

static void assert_same(const struct ec_request *a, const struct ec_request *b)
{
    assert_int_equal(a->round, b->round);
    assert_int_equal(a->part, b->part);
    assert_int_equal(a->parts, b->parts);
    assert_int_equal(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        assert_int_equal(a->runs[i].group, b->runs[i].group);
        assert_int_equal(a->runs[i].first, b->runs[i].first);
        assert_int_equal(a->runs[i].count, b->runs[i].count);
    }
}

static void test_request(void **state)
{
    (void)state;
    static const uint8_t expected[] = {3, 0, 1,   2, 0, 0, 0,    7,    /* part 0 of 1, round 7 */
                                       0, 1, 2,   3, 4, 5, 0xff, 0xff, /* 5 from place 4 of group 0x10203 */
                                       0, 0, 254, 1};
    struct ec_request request = {
        .round = 7, .parts = 1, .count = 2, .runs = {{0x10203, 4, 5}, {0xffff0000, 254, 1}}};
    uint8_t bytes[EC_REQUEST_BYTES_MAX];
    assert_int_equal(ec_request_encode(&request, bytes), sizeof(expected));
    assert_memory_equal(bytes, expected, sizeof(expected));
    struct ec_request read;
    assert_int_equal(ec_request_decode(bytes, sizeof(expected), &read), 0);
    assert_same(&read, &request);
    for (size_t size = 0; size < sizeof(expected); size++)
        assert_int_equal(ec_request_decode(bytes, size, &read), -1);
    assert_int_equal(ec_request_decode(bytes, sizeof(expected) + 1, &read), -1);
    static const struct change bad[] = {{0, 1},
                                        {1, 1} /* part 1 of 1 */,
                                        {2, 0},
                                        {2, 2} /* part 0 of 2 is not full */,
                                        {3, 0},
                                        {3, 1},
                                        {3, 3},
                                        {3, 149},
                                        {7, 0} /* round 0 */,
                                        {13, 0} /* a run of none */,
                                        {13, 252} /* past the code */,
                                        {18, 255},
                                        {19, 2}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        memcpy(bytes, expected, sizeof(expected));
        bytes[bad[i].at] = bad[i].value;
        assert_int_equal(ec_request_decode(bytes, sizeof(expected), &read), -1);
    }
}

static void test_runs_come_in_order(void **state)
{
    (void)state;
    static const struct {
        struct ec_run second;
        int expected;
    } after[] = {
        {{5, 10, 1}, -1}, {{5, 12, 1}, -1}, {{5, 13, 1}, 0},
        {{5, 9, 1}, -1},  {{4, 20, 1}, -1}, {{6, 0, 1}, 0},
    };
    for (size_t i = 0; i < sizeof(after) / sizeof(*after); i++) {
        struct ec_request request = {.round = 1, .parts = 1, .count = 2, .runs = {{5, 10, 3}, {6, 0, 1}}};
        uint8_t bytes[EC_REQUEST_BYTES_MAX];
        size_t size = ec_request_encode(&request, bytes);
        bytes[EC_REQUEST_BYTES + EC_RUN_BYTES + 3] = (uint8_t)after[i].second.group;
        bytes[EC_REQUEST_BYTES + EC_RUN_BYTES + 4] = after[i].second.first;
        assert_int_equal(ec_request_decode(bytes, size, &request), after[i].expected);
    }
}

static void test_a_full_part(void **state)
{
    (void)state;
    struct ec_request request = {.round = 1, .part = 6, .parts = EC_PARTS_MAX, .count = EC_RUNS_MAX};
    for (uint32_t i = 0; i < EC_RUNS_MAX; i++)
        request.runs[i] = (struct ec_run){i * 1000, (uint8_t)i, (uint8_t)(255 - i)};
    uint8_t bytes[EC_REQUEST_BYTES_MAX];
    assert_int_equal(ec_request_encode(&request, bytes), EC_REQUEST_BYTES_MAX);
    struct ec_request read;
    assert_int_equal(ec_request_decode(bytes, sizeof(bytes), &read), 0);
    assert_same(&read, &request);
    bytes[2] = EC_PARTS_MAX + 1;
    assert_int_equal(ec_request_decode(bytes, sizeof(bytes), &read), -1);
}

static int run_erasure_coding(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mark),        cmocka_unit_test(test_ack),
        cmocka_unit_test(test_request),     cmocka_unit_test(test_runs_come_in_order),
        cmocka_unit_test(test_a_full_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test hybrid ----------------------------------------------------------------------------------- */

static void test_rows_bytes(void **state)
{
    (void)state;
    static const uint8_t expected[] = {3, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 255};
    const struct hybrid_rows rows = {.mark = 0x01020304, .first = 0x05060708, .count = 2, .rows = {9, 255}};
    uint8_t bytes[32];
    assert_int_equal(hybrid_rows_encode(&rows, bytes), sizeof expected);
    assert_memory_equal(bytes, expected, sizeof expected);
    struct hybrid_rows read;
    assert_int_equal(hybrid_rows_decode(bytes, sizeof expected, &read), 0);
    assert_true(read.mark == rows.mark && read.first == rows.first && read.count == 2);
    assert_memory_equal(read.rows, rows.rows, 2);
}

static void test_impossible_rows_are_refused(void **state)
{
    (void)state;
    const struct hybrid_rows rows = {.mark = 1, .count = 3};
    uint8_t good[HYBRID_ROWS_BYTES + 4] = {0};
    struct hybrid_rows read;
    hybrid_rows_encode(&rows, good);
    for (size_t bytes = 0; bytes <= sizeof good; bytes++)
        assert_int_equal(hybrid_rows_decode(good, bytes, &read), bytes == HYBRID_ROWS_BYTES + 3 ? 0 : -1);
    static const struct {
        size_t at;
        uint8_t value;
    } bad[] = {{0, 1}, {0, 2}, {1, 1}, {2, 4}, {3, 0}, {3, 2}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t bytes[sizeof good];
        memcpy(bytes, good, sizeof bytes);
        bytes[bad[i].at] = bad[i].value;
        assert_int_equal(hybrid_rows_decode(bytes, HYBRID_ROWS_BYTES + 3, &read), -1);
    }
    memset(good + 8, 0xff, 4); /* numbers that do not fit 32 bits */
    assert_int_equal(hybrid_rows_decode(good, HYBRID_ROWS_BYTES + 3, &read), -1);
}

static int run_hybrid(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_bytes),
        cmocka_unit_test(test_impossible_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test selective repeat ------------------------------------------------------------------------- */

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

static int run_selective_repeat(void)
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

int main(void)
{
    return run_bounded_completion() + run_erasure_coding() + run_hybrid() + run_selective_repeat();
}
