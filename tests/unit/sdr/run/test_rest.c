/*
 * test_rest.c - how long packets may wait in the sockets: a part of the round trip, and of the buffer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/run/rest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS LH_NS_PER_MS
#define US LH_NS_PER_US

/* What is allowed after a while at that rate. */
static lh_time span_at(lh_time rtt_ns, uint64_t packets_a_ms, uint64_t buffer_packets)
{
    struct rest rest = {0};
    lh_time span_ns = 0;
    for (uint64_t i = 1; i <= 10; i++)
        span_ns = rest_span(&rest, REST_FIRST + i * packets_a_ms, rtt_ns, buffer_packets, i * MS);
    return span_ns;
}

static void test_part_of_the_round_trip(void **state)
{
    (void)state;
    assert_int_equal(span_at(0, 10, 8000), 0);
    assert_int_equal(span_at(50 * US, 10, 8000), 0);
    assert_int_equal(span_at(25600 * US, 10, 8000), 100 * US);
    assert_int_equal(span_at(300 * MS, 10, 8000), REST_MAX_NS);
}

/* 250 packets a millisecond; the buffer holds 100: its eighth is filled in 48 us. */
static void test_part_of_the_buffer(void **state)
{
    (void)state;
    assert_in_range(span_at(300 * MS, 250, 100), 40 * US, 50 * US);
    assert_int_equal(span_at(300 * MS, 2500, 100), 0);
    assert_int_equal(span_at(300 * MS, 2500, 8000), REST_MAX_NS);
}

static void test_follows_the_rate(void **state)
{
    (void)state;
    struct rest rest = {0};
    assert_int_equal(rest_span(&rest, REST_FIRST - 1, 100 * MS, 1000, MS), 0);
    assert_int_equal(rest_span(&rest, REST_FIRST, 100 * MS, 1000, 2 * MS), REST_MAX_NS);
    assert_int_equal(rest_span(&rest, 50000, 100 * MS, 1000, 3 * MS), 0);
    assert_int_equal(rest_span(&rest, 50001, 100 * MS, 1000, 4 * MS), REST_MAX_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_part_of_the_round_trip),
        cmocka_unit_test(test_part_of_the_buffer),
        cmocka_unit_test(test_follows_the_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
