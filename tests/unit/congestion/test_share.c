/*
 * test_share.c - growth, targets and first windows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MTU  1000
#define GBIT UINT64_C(1000000000)

static const struct lh_congestion_path path = {
    .mtu_bytes = MTU, .rate_max_bps = 10 * GBIT, .window_max_bytes = 50000000, .rtt_ns = 10 * LH_NS_PER_MS};

/* More for the larger flow, but relatively less. */
static void test_step(void **state)
{
    (void)state;
    assert_true(share_step_bytes(100.0 * MTU, MTU) == 5.0 * MTU);
    assert_true(share_step_bytes(1.0 * MTU, MTU) == MTU);
    assert_true(share_step_bytes(0, MTU) == MTU);
    for (double packets = 4; packets < 1e7; packets *= 2) {
        double step = share_step_bytes(packets * MTU, MTU), next = share_step_bytes(2 * packets * MTU, MTU);
        assert_true(next >= step && next / 2 < step);
    }
}

static void test_target(void **state)
{
    (void)state;
    assert_true(share_smallness(MTU / 2.0, MTU) == 1);
    assert_true(share_smallness(1024.0 * MTU, MTU) == 0.5);
    assert_true(share_smallness(1e300, MTU) == 0);
    assert_true(share_target_ns(1000, MTU, MTU) == 5000);
    assert_true(share_target_ns(1000, 1024.0 * MTU, MTU) == 3000);
    assert_true(share_target_ns(1000, 1e12, MTU) == 1000);
}

static void test_first_window(void **state)
{
    (void)state;
    struct lh_congestion_path known = path;
    assert_true(share_first_window_bytes(&known) == 10 * MTU);
    known.remembered_rate_bps = GBIT;
    assert_true(share_first_window_bytes(&known) == 625000);
    known.rate_bps = 2 * GBIT;
    assert_true(share_first_window_bytes(&known) == 2500000);
    known.rtt_ns = 0; /* not known yet */
    assert_true(share_first_window_bytes(&known) == 10 * MTU);
}

static void test_bounds(void **state)
{
    (void)state;
    assert_int_equal(share_rate_within(1e9, &path), GBIT);
    assert_int_equal(share_rate_within(1e30, &path), 10 * GBIT);
    assert_true(share_rate_within(0, &path) > 0);
    assert_int_equal(share_window_within(0, &path), MTU);
    assert_int_equal(share_window_within(12345, &path), 12345);
    assert_int_equal(share_window_within(1e30, &path), 50000000);
    assert_int_equal(share_burst_bytes(160000, &path), 10000);
    assert_int_equal(share_burst_bytes(1, &path), MTU);
    assert_true(share_bytes_of(share_rate_of(777, 1e6), 1e6) == 777);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_target),
        cmocka_unit_test(test_first_window),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
