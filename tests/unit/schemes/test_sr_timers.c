/*
 * test_sr_timers.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "schemes/sr_timers.h"

/* ---- test ack pace --------------------------------------------------------------------------------- */

static const struct sr_timing ack_pace_timing = {
    .rtt_ns = 8000, .overdue_ns = 9000, .window_ns = 1000, .measured = true};

static lh_time due_after(bool nack, uint32_t arrivals, uint32_t chunks)
{
    struct sr_ack_pace pace;
    sr_ack_pace_init(&pace, nack, 1000);
    if (arrivals > 0)
        sr_ack_pace_on_arrivals(&pace, arrivals, 1500);
    return sr_ack_pace_expiry(&pace, chunks, &ack_pace_timing);
}

static void test_by_count(void **state)
{
    (void)state;
    assert_int_equal(due_after(true, 0, 100), LH_TIME_NEVER);
    assert_int_not_equal(due_after(true, 15, 100), 0);
    assert_int_equal(due_after(true, 16, 100), 0);
    assert_int_not_equal(due_after(true, 127, 1024), 0);
    assert_int_equal(due_after(true, 128, 1024), 0);
    assert_int_not_equal(due_after(false, 63, 100), 0);
    assert_int_equal(due_after(false, 64, 100), 0);
    assert_int_not_equal(due_after(false, 127, 1024), 0);
    assert_int_equal(due_after(false, 128, 1024), 0);
}

static void test_by_time(void **state)
{
    (void)state;
    assert_int_equal(due_after(false, 1, 100), 3000); /* a quarter round trip after the start */
    assert_int_equal(due_after(true, 1, 100), 3500);  /* … after the arrival */
}

static void test_a_steady_trickle_is_acknowledged_once_a_round_trip(void **state)
{
    (void)state;
    struct sr_ack_pace pace;
    sr_ack_pace_init(&pace, true, 0);
    for (lh_time now = 1000; now < 8000; now += 1000) {
        sr_ack_pace_on_arrivals(&pace, 1, now);
        assert_true(sr_ack_pace_expiry(&pace, 1000, &ack_pace_timing) > now);
    }
    assert_int_equal(sr_ack_pace_expiry(&pace, 1000, &ack_pace_timing), 8000);
    sr_ack_pace_on_ack(&pace, 8000);
    assert_int_equal(sr_ack_pace_expiry(&pace, 1000, &ack_pace_timing), LH_TIME_NEVER);
}

static int run_ack_pace(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_count),
        cmocka_unit_test(test_by_time),
        cmocka_unit_test(test_a_steady_trickle_is_acknowledged_once_a_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test backoff ---------------------------------------------------------------------------------- */

static const struct sr_timing backoff_timing = {
    .rtt_ns = 1000, .overdue_ns = 1100, .window_ns = 125, .measured = true};

/* A round, and the receiver's word about it. Returns how long repairs wait then. */
static lh_time round_of(struct sr_backoff *backoff, lh_time now, uint32_t arrived)
{
    sr_backoff_on_feedback(backoff, arrived);
    sr_backoff_on_repair(backoff, &backoff_timing, now);
    lh_time ready = sr_backoff_expiry(backoff, &backoff_timing);
    return ready > now ? ready - now : 0;
}

static void test_waits_longer_with_each_round_that_brings_nothing(void **state)
{
    (void)state;
    static const lh_time spans[] = {0, 0, 0, 2000, 4000, 8000, 8000, 8000};
    struct sr_backoff backoff;
    sr_backoff_init(&backoff);
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        assert_int_equal(round_of(&backoff, i * 1000000, 7), spans[i]);
    assert_int_equal(round_of(&backoff, 20000000, 8), 0);
    assert_int_equal(round_of(&backoff, 21000000, 7), 0);
}

static void test_what_arrives_ends_the_wait(void **state)
{
    (void)state;
    struct sr_backoff backoff;
    sr_backoff_init(&backoff);
    for (lh_time now = 0; now < 6000; now += 1000)
        (void)round_of(&backoff, now, 1);
    assert_true(sr_backoff_expiry(&backoff, &backoff_timing) > 6000);
    sr_backoff_on_feedback(&backoff, 1);
    assert_true(sr_backoff_expiry(&backoff, &backoff_timing) > 6000);
    sr_backoff_on_feedback(&backoff, 2);
    assert_int_equal(sr_backoff_expiry(&backoff, &backoff_timing), 0);
}

static void test_repairs_within_a_round_trip_are_one_round(void **state)
{
    (void)state;
    struct sr_backoff backoff;
    sr_backoff_init(&backoff);
    for (lh_time now = 0; now < 3000; now += 1000)
        (void)round_of(&backoff, now, 1);
    for (lh_time now = 2001; now < 3000; now++)
        assert_int_equal(round_of(&backoff, now, 1), 0);
    assert_int_equal(round_of(&backoff, 3000, 1), 2000);
}

static void test_a_silent_receiver_is_no_reason_to_wait(void **state)
{
    (void)state;
    struct sr_backoff backoff;
    sr_backoff_init(&backoff);
    sr_backoff_on_feedback(&backoff, 1);
    for (lh_time now = 0; now < 50000; now += 1000)
        sr_backoff_on_repair(&backoff, &backoff_timing, now);
    assert_int_equal(sr_backoff_expiry(&backoff, &backoff_timing), 0);
}

/* A clock that jumps makes one sample long: seed 253318032265410 of the fault world. */
static void test_a_shorter_round_trip_shortens_the_wait(void **state)
{
    (void)state;
    static const struct sr_timing jumped = {.rtt_ns = 1000000, .overdue_ns = 8000000, .measured = true};
    struct sr_backoff backoff;
    sr_backoff_init(&backoff);
    for (lh_time now = 0; now < 6000; now += 1000)
        (void)round_of(&backoff, now, 1);
    assert_int_equal(sr_backoff_expiry(&backoff, &jumped), 8005000);
    assert_int_equal(sr_backoff_expiry(&backoff, &backoff_timing), 13000);
}

static int run_backoff(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_longer_with_each_round_that_brings_nothing),
        cmocka_unit_test(test_what_arrives_ends_the_wait),
        cmocka_unit_test(test_repairs_within_a_round_trip_are_one_round),
        cmocka_unit_test(test_a_silent_receiver_is_no_reason_to_wait),
        cmocka_unit_test(test_a_shorter_round_trip_shortens_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test probe ------------------------------------------------------------------------------------ */

static const struct sr_timing probe_measured = {
    .rtt_ns = 1000, .overdue_ns = 1100, .window_ns = 125, .measured = true};

static void test_nothing_is_asked_before_the_first_injection(void **state)
{
    (void)state;
    struct sr_probe probe;
    sr_probe_init(&probe);
    assert_int_equal(sr_probe_expiry(&probe, &probe_measured), LH_TIME_NEVER);
    sr_probe_on_feedback(&probe, 5);
    assert_int_equal(sr_probe_expiry(&probe, &probe_measured), LH_TIME_NEVER);
    sr_probe_on_injection(&probe, 10);
    assert_int_equal(sr_probe_expiry(&probe, &probe_measured), 1110);
    sr_probe_on_feedback(&probe, 20);
    assert_int_equal(sr_probe_expiry(&probe, &probe_measured), 1120);
}

static void test_backs_off_after_three(void **state)
{
    (void)state;
    static const lh_time spans[] = {1100, 1100, 1100, 1651, 2477, 3716, 5575, 8363, 8800, 8800, 8800};
    struct sr_probe probe;
    sr_probe_init(&probe);
    sr_probe_on_injection(&probe, 0);
    lh_time now = 0;
    for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++) {
        assert_int_equal(sr_probe_expiry(&probe, &probe_measured) - now, spans[i]);
        now += spans[i];
        sr_probe_on_sent(&probe, now);
    }
    sr_probe_on_feedback(&probe, now);
    assert_int_equal(sr_probe_expiry(&probe, &probe_measured) - now, 1100);
    probe.unanswered = UINT32_MAX;
    sr_probe_on_sent(&probe, now);
    assert_int_equal(sr_probe_expiry(&probe, &probe_measured) - now, 8800);
}

static void test_doubles_while_nothing_was_measured(void **state)
{
    (void)state;
    struct lh_path_view path = {0};
    struct sr_timing blind = sr_timing_of(&path);
    struct sr_probe probe;
    sr_probe_init(&probe);
    sr_probe_on_injection(&probe, 0);
    for (uint32_t i = 0; i < 14; i++) {
        lh_time span = SR_INITIAL_RTT_NS << (i < 10 ? i : 10);
        assert_int_equal(sr_probe_expiry(&probe, &blind), span);
        sr_probe_on_sent(&probe, 0);
    }
}

static int run_probe(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_asked_before_the_first_injection),
        cmocka_unit_test(test_backs_off_after_three),
        cmocka_unit_test(test_doubles_while_nothing_was_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test timing ----------------------------------------------------------------------------------- */

static void test_as_measured(void **state)
{
    (void)state;
    struct lh_path_view path = {
        .rtt_ns = 1000, .rtt_minimum_ns = 900, .overdue_ns = 1200, .reorder_window_ns = 100};
    struct sr_timing timing = sr_timing_of(&path);
    assert_true(timing.measured);
    assert_int_equal(timing.rtt_ns, 1000);
    assert_int_equal(timing.overdue_ns, 1200);
    assert_int_equal(timing.window_ns, 100);
}

static void test_impossible_paths_are_made_possible(void **state)
{
    (void)state;
    struct lh_path_view path = {.rtt_ns = 1000};
    struct sr_timing timing = sr_timing_of(&path);
    assert_int_equal(timing.overdue_ns, 1000);
    assert_int_equal(timing.window_ns, 1);
    path =
        (struct lh_path_view){.rtt_ns = LH_TIME_NEVER, .overdue_ns = 1, .reorder_window_ns = LH_TIME_NEVER};
    timing = sr_timing_of(&path);
    assert_true(timing.rtt_ns < LH_TIME_NEVER / 200);
    assert_int_equal(timing.overdue_ns, timing.rtt_ns);
    assert_int_equal(timing.window_ns, timing.overdue_ns);
}

static void test_nothing_measured(void **state)
{
    (void)state;
    struct lh_path_view path = {0};
    struct sr_timing timing = sr_timing_of(&path);
    assert_false(timing.measured);
    assert_int_equal(timing.rtt_ns, SR_INITIAL_RTT_NS);
    assert_in_range(timing.window_ns, 1, timing.overdue_ns);
}

static void test_moments_do_not_wrap(void **state)
{
    (void)state;
    assert_int_equal(sr_after(5, 6), 11);
    assert_int_equal(sr_after(LH_TIME_NEVER, 0), LH_TIME_NEVER);
    assert_int_equal(sr_after(LH_TIME_NEVER, 7), LH_TIME_NEVER);
    assert_int_equal(sr_after(LH_TIME_NEVER - 7, 7), LH_TIME_NEVER);
    assert_int_equal(sr_after(LH_TIME_NEVER - 7, 8), LH_TIME_NEVER);
}

static void test_word_masks(void **state)
{
    (void)state;
    assert_int_equal(sr_word_below(0, 0), 0);
    assert_int_equal(sr_word_below(0, 1), 1);
    assert_int_equal(sr_word_below(0, 63), UINT64_MAX >> 1);
    assert_int_equal(sr_word_below(0, 64), UINT64_MAX);
    assert_int_equal(sr_word_below(1, 64), 0);
    assert_int_equal(sr_word_below(1, 65), 1);
    assert_int_equal(sr_word_below(UINT32_MAX, UINT32_MAX), 0);
}

static int run_timing(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_measured),      cmocka_unit_test(test_impossible_paths_are_made_possible),
        cmocka_unit_test(test_nothing_measured), cmocka_unit_test(test_moments_do_not_wrap),
        cmocka_unit_test(test_word_masks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_ack_pace() + run_backoff() + run_probe() + run_timing();
}
