/*
 * test_congestion_table_fixed.c - the controller that controls nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/controllers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static _Alignas(64) uint8_t room[64];

static void start(uint64_t rate_bps, uint64_t rate_max_bps)
{
    const struct lh_congestion_path path = {
        .mtu_bytes = 1024, .rate_bps = rate_bps, .rate_max_bps = rate_max_bps, .window_max_bytes = 1 << 20};
    uint8_t params[LH_CONGESTION_PARAMS] = {0};
    assert_true(fixed_congestion.state_bytes <= sizeof room);
    memset(room, 0xa5, sizeof room);
    fixed_congestion.start(room, &path, params, 1000);
}

static void expect(uint64_t rate_bps, uint64_t view_bps, lh_time view_rtt_ns)
{
    struct lh_congestion_decision decision;
    struct lh_congestion_view view;
    fixed_congestion.decide(room, 2000, &decision);
    fixed_congestion.view(room, &view);
    assert_true(decision.rate_bps == rate_bps);
    assert_true(decision.window_bytes == UINT64_MAX && decision.total_bytes == UINT64_MAX);
    assert_true(decision.next_ns == LH_TIME_NEVER);
    assert_int_equal(view.bandwidth_bps, view_bps);
    assert_int_equal(view.rtt_minimum_ns, view_rtt_ns);
    assert_string_equal(view.state, "fixed");
}

static void test_rate_told(void **state)
{
    (void)state;
    start(5000000, LH_RATE_NONE);
    expect(5000000, 5000000, 0);
    start(5000000, 4000000);
    expect(4000000, 5000000, 0);
}

static void test_no_rate(void **state)
{
    (void)state;
    start(0, LH_RATE_NONE);
    expect(LH_RATE_NONE, 0, 0);
    start(0, 4000000);
    expect(4000000, 0, 0);
}

/* Whatever is lost or marked; only the view learns the round trip. */
static void test_no_control(void **state)
{
    (void)state;
    start(5000000, LH_RATE_NONE);
    struct lh_congestion_feedback feedback = {
        .now = 5000, .arrived_bytes = 1, .lost_bytes = 1 << 20, .marked_bytes = 1, .rtt_ns = 700};
    fixed_congestion.on_feedback(room, &feedback);
    fixed_congestion.on_timer(room, 6000);
    expect(5000000, 5000000, 700);
    feedback.rtt_ns = 900;
    fixed_congestion.on_feedback(room, &feedback);
    feedback.rtt_ns = 0;
    fixed_congestion.on_feedback(room, &feedback);
    expect(5000000, 5000000, 700);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_told),
        cmocka_unit_test(test_no_rate),
        cmocka_unit_test(test_no_control),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
