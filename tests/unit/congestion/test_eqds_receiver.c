/*
 * test_eqds_receiver.c - credits of the receiver's half.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/eqds_receiver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MTU  1000
#define GBIT UINT64_C(1000000000)

static const struct lh_congestion_path path = {
    .mtu_bytes = MTU, .window_max_bytes = 1000000000, .rtt_ns = LH_NS_PER_MS};

static uint64_t credit(struct eqds_receiver *receiver, lh_time now)
{
    lh_time next_ns;
    return eqds_receiver_credit(receiver, now, &next_ns);
}

/* The first window at once; then nothing until something is read. */
static void test_first_window(void **state)
{
    (void)state;
    struct eqds_receiver receiver;
    lh_time next_ns = 0;
    eqds_receiver_start(&receiver, &path, 10 * MTU, 1e12, 1);
    assert_int_equal(eqds_receiver_credit(&receiver, 1, &next_ns), 10 * MTU);
    assert_int_equal(next_ns, LH_TIME_NEVER);
    assert_int_equal(credit(&receiver, LH_NS_PER_S), 10 * MTU);
    eqds_receiver_on_arrived(&receiver, 2 * MTU, 0, LH_NS_PER_S);
    assert_true(credit(&receiver, LH_NS_PER_S + LH_NS_PER_MS) >= 12 * MTU);
}

/* What is read in one go comes back as credits at the pace, not in one go. */
static void test_pace(void **state)
{
    (void)state;
    struct eqds_receiver receiver;
    lh_time next_ns = 0;
    eqds_receiver_start(&receiver, &path, 1000 * MTU, 8e9, 1); /* a byte a nanosecond */
    assert_int_equal(credit(&receiver, 1), 1000 * MTU);
    eqds_receiver_on_arrived(&receiver, 900 * MTU, 0, 2);
    uint64_t granted = eqds_receiver_credit(&receiver, 1001, &next_ns);
    assert_int_equal(granted, 1000 * MTU + 1000);
    assert_true(next_ns > 1001 && next_ns < LH_NS_PER_MS);
    granted = eqds_receiver_credit(&receiver, next_ns, &next_ns);
    assert_int_equal(granted, 1000 * MTU + (next_ns < LH_TIME_NEVER ? granted - 1000 * MTU : 0));
    assert_true(granted > 1100 * MTU && granted < 1300 * MTU);
}

/* Loops as long as the round trip double the window; longer ones and marks lower it, to the first one. */
static double after_rounds(uint32_t count, lh_time loop_ns, uint64_t marked_of_4)
{
    struct eqds_receiver receiver;
    lh_time now = 1;
    eqds_receiver_start(&receiver, &path, 10 * MTU, 1e14, now);
    for (uint32_t i = 0; i < count; i++) { /* a granted window arrives after each loop */
        uint64_t granted = credit(&receiver, now);
        now += i < 8 ? path.rtt_ns : loop_ns;
        uint64_t bytes = granted - receiver.arrived_bytes;
        eqds_receiver_on_arrived(&receiver, bytes, i < 8 ? 0 : bytes * marked_of_4 / 4, now);
    }
    return receiver.window_bytes;
}

static void test_window(void **state)
{
    (void)state;
    double doubled = after_rounds(8, 0, 0);
    assert_true(doubled == 10 * MTU * 256);
    assert_true(after_rounds(9, path.rtt_ns, 0) == 2 * doubled);
    assert_true(after_rounds(12, 2 * path.rtt_ns, 0) < doubled);
    assert_true(after_rounds(16, path.rtt_ns, 2) < doubled);
    assert_true(after_rounds(40, path.rtt_ns, 4) == 2 * MTU);
}

/* A sender that had nothing to send for a while: not a longer loop. */
static void test_pause(void **state)
{
    (void)state;
    struct eqds_receiver receiver;
    lh_time now = 1;
    eqds_receiver_start(&receiver, &path, 10 * MTU, 1e14, now);
    for (int i = 0; i < 8; i++) {
        uint64_t granted = credit(&receiver, now);
        now += path.rtt_ns;
        eqds_receiver_on_arrived(&receiver, granted - receiver.arrived_bytes, 0, now);
    }
    double window = receiver.window_bytes;
    uint64_t granted = credit(&receiver, now);
    now += LH_NS_PER_S;
    eqds_receiver_on_arrived(&receiver, granted - receiver.arrived_bytes, 0, now);
    assert_true(receiver.doubling && receiver.window_bytes >= window);
}

static void test_small(void **state)
{
    (void)state;
    assert_true(sizeof(struct eqds_receiver) <= 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_window), cmocka_unit_test(test_pace),  cmocka_unit_test(test_window),
        cmocka_unit_test(test_pause),        cmocka_unit_test(test_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
