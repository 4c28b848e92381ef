/*
 * test_read_rate.c - what a receiver reads: the best span, and how it was when its sockets dropped.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/rate/read_rate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define RTT_NS  (20 * LH_NS_PER_MS)
#define SPAN_NS (READ_RATE_ROUNDS * RTT_NS)
#define MBIT    UINT64_C(1000000)

static struct read_rate rate;
static uint64_t arrived, dropped;
static lh_time now;

static int setup(void **state)
{
    (void)state;
    rate = (struct read_rate){0};
    arrived = dropped = 0;
    now = LH_NS_PER_S;
    read_rate_note(&rate, arrived, dropped, RTT_NS, now);
    return 0;
}

static void note_after(lh_time span_ns, uint64_t rate_bps)
{
    now += span_ns;
    arrived += rate_bps * span_ns / LH_NS_PER_S / 8;
    read_rate_note(&rate, arrived, dropped, RTT_NS, now);
}

static void the_best_span_counts(void **state)
{
    (void)state;
    note_after(SPAN_NS - 1, 1000 * MBIT);
    assert_int_equal(rate.best_bps, 0);
    note_after(SPAN_NS + 1, 0); /* a burst and a pause are one span */
    assert_in_range(rate.best_bps, 499 * MBIT, 501 * MBIT);
    note_after(SPAN_NS, 300 * MBIT);
    assert_in_range(rate.best_bps, 499 * MBIT, 501 * MBIT);
    note_after(SPAN_NS, 600 * MBIT);
    assert_int_equal(rate.best_bps, 600 * MBIT);
    assert_int_equal(rate.receiver_bps, 0);
}

static void short_round_trips_make_no_shorter_spans(void **state)
{
    (void)state;
    now += READ_RATE_LEAST_NS - 1;
    read_rate_note(&rate, 1000, 0, 1, now);
    assert_int_equal(rate.best_bps, 0);
    read_rate_note(&rate, 1000, 0, 1, now + 1);
    assert_int_equal(rate.best_bps, 80000);
}

static void drops_tell_the_receivers_rate(void **state)
{
    (void)state;
    dropped = 1;
    note_after(SPAN_NS / 2, 80 * MBIT);
    assert_int_equal(rate.receiver_bps, 80 * MBIT); /* at once */
    note_after(SPAN_NS / 2, 120 * MBIT);
    assert_int_equal(rate.receiver_bps, 100 * MBIT);
    for (int i = 0; i < 100; i++) /* no matter how long ago */
        note_after(SPAN_NS, 125 * MBIT);
    assert_in_range(rate.receiver_bps, 100 * MBIT, 125 * MBIT);
}

static void a_receiver_that_reads_more_is_not_slow(void **state)
{
    (void)state;
    dropped = 1;
    note_after(SPAN_NS, 100 * MBIT);
    note_after(SPAN_NS, 100 * MBIT);
    note_after(SPAN_NS, 126 * MBIT);
    assert_int_equal(rate.receiver_bps, 0);
    dropped = 2;
    note_after(SPAN_NS, 0);
    assert_int_equal(rate.receiver_bps, 1); /* it reads nothing */
    note_after(SPAN_NS, 50 * MBIT);         /* the pause's other half */
    assert_int_equal(rate.receiver_bps, 50 * MBIT);
}

static void the_first_report_may_have_drops(void **state)
{
    (void)state;
    rate = (struct read_rate){0};
    read_rate_note(&rate, 1000, 7, RTT_NS, 5);
    assert_int_equal(rate.receiver_bps, 1);
    assert_int_equal(rate.best_bps, 0);
    read_rate_note(&rate, 1000, 7, RTT_NS, 5); /* no time has passed */
    assert_int_equal(rate.best_bps, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_best_span_counts, setup),
        cmocka_unit_test_setup(short_round_trips_make_no_shorter_spans, setup),
        cmocka_unit_test_setup(drops_tell_the_receivers_rate, setup),
        cmocka_unit_test_setup(a_receiver_that_reads_more_is_not_slow, setup),
        cmocka_unit_test_setup(the_first_report_may_have_drops, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
