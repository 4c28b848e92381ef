/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/erasure_coding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mark),        cmocka_unit_test(test_ack),
        cmocka_unit_test(test_request),     cmocka_unit_test(test_runs_come_in_order),
        cmocka_unit_test(test_a_full_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
