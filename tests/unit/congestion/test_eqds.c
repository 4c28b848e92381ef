/*
 * test_eqds.c - the sender's half of credits, and both halves through a bottleneck.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "congestion/eqds.h"
#include "support/controller_trial.h"

/* ---- test eqds ------------------------------------------------------------------------------------- */

static struct trial_subject subject = {&eqds_congestion, 0};

/* The speculative window without a credit; then what was granted, plus what was lost. */
static void test_credits(void **state)
{
    (void)state;
    _Alignas(64) uint8_t eqds[512];
    uint8_t params[LH_CONGESTION_PARAMS];
    assert_int_equal(eqds_congestion.parse("window=100kB", params), 0);
    eqds_congestion.start(eqds, &trial_path, params, 1);
    assert_int_equal(trial_decide(&eqds_congestion, eqds).total_bytes, 100000);
    struct lh_congestion_feedback feedback = {.now = 2,
                                              .arrived_bytes = 50000,
                                              .arrived_total_bytes = 50000,
                                              .lost_total_bytes = 7000,
                                              .rtt_ns = trial_path.rtt_ns,
                                              .rate_bps = TRIAL_GBIT,
                                              .credit_bytes = 250000};
    eqds_congestion.on_feedback(eqds, &feedback);
    assert_int_equal(trial_decide(&eqds_congestion, eqds).total_bytes, 257000);
    /* 200 kB in 10 ms are 160 Mbit/s; twice that. */
    uint64_t rate = trial_decide(&eqds_congestion, eqds).rate_bps;
    assert_true(rate > 319 * TRIAL_GBIT / 1000 && rate < 321 * TRIAL_GBIT / 1000);
}

/* Whatever the receiver grants: two windows of what was delivered, and the first one. */
static void test_absurd_credits(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        _Alignas(64) uint8_t eqds[512];
        eqds_congestion.start(eqds, &trial_path, trial_no_params, 1);
        struct lh_congestion_feedback feedback = {.now = 2,
                                                  .arrived_bytes = 50000,
                                                  .arrived_total_bytes = 50000,
                                                  .rtt_ns = trial_path.rtt_ns,
                                                  .rate_bps = TRIAL_GBIT,
                                                  .credit_bytes = UINT64_MAX - (uint64_t)i};
        eqds_congestion.on_feedback(eqds, &feedback);
        struct lh_congestion_decision decision = trial_decide(&eqds_congestion, eqds);
        assert_int_equal(decision.window_bytes, 10 * TRIAL_MTU + 2 * 1250000);
        assert_true(decision.rate_bps < 5 * TRIAL_GBIT);
    }
}

/* A window that loss has cut grows again when as much has arrived as was in flight, though no packet of it
 * was timed. */
static void test_untimed_arrivals(void **state)
{
    (void)state;
    _Alignas(64) uint8_t eqds[512];
    eqds_congestion.start(eqds, &trial_path, trial_no_params, 1);
    struct lh_congestion_feedback feedback = {.now = 2,
                                              .arrived_bytes = 100 * TRIAL_MTU,
                                              .arrived_total_bytes = 100 * TRIAL_MTU,
                                              .lost_bytes = 100 * TRIAL_MTU,
                                              .lost_total_bytes = 100 * TRIAL_MTU,
                                              .in_flight_bytes = 2 * TRIAL_MTU,
                                              .rtt_ns = trial_path.rtt_ns,
                                              .credit_bytes = 110 * TRIAL_MTU};
    eqds_congestion.on_feedback(eqds, &feedback);
    uint64_t cut = trial_decide(&eqds_congestion, eqds).window_bytes;
    assert_int_equal(cut, 5 * TRIAL_MTU);
    feedback = (struct lh_congestion_feedback){.now = 3,
                                               .arrived_bytes = TRIAL_MTU,
                                               .arrived_total_bytes = 101 * TRIAL_MTU,
                                               .in_flight_bytes = TRIAL_MTU,
                                               .credit_bytes = 111 * TRIAL_MTU};
    eqds_congestion.on_feedback(eqds, &feedback);
    assert_int_equal(trial_decide(&eqds_congestion, eqds).window_bytes, cut);
    feedback.arrived_total_bytes = 102 * TRIAL_MTU;
    eqds_congestion.on_feedback(eqds, &feedback);
    assert_true(trial_decide(&eqds_congestion, eqds).window_bytes > cut);
}

/* Eight senders to one receiver at once: about a window is queued, and they get the same. */
static void test_incast(void **state)
{
    (void)state;
    for (int is_long = 0; is_long < 2; is_long++) {
        struct trial trial = {.controller = &eqds_congestion,
                              .rate_bps = is_long ? 2 * TRIAL_GBIT : 100 * TRIAL_GBIT,
                              .rtt_ns = is_long ? 25 * LH_NS_PER_MS : 20 * LH_NS_PER_US,
                              .queue = 10,
                              .flows = 8,
                              .rounds = 500};
        struct trial_result result = trial_run(&trial);
        assert_true(result.peak < 1.25 && result.dropped == 0);
        assert_true(result.goodput > 0.95 && result.jain > 0.9);
    }
}

/* The pace of credits is the flow's, however fast the path is. */
static void test_told_pace(void **state)
{
    (void)state;
    struct trial trial = {.controller = &eqds_congestion,
                          .params = "rate=250Mbit",
                          .rate_bps = 2 * TRIAL_GBIT,
                          .rtt_ns = 25 * LH_NS_PER_MS,
                          .queue = 1,
                          .flows = 1,
                          .rounds = 200};
    double goodput = trial_run(&trial).goodput;
    assert_true(goodput > 0.115 && goodput < 0.13);
}

static void test_texts(void **state)
{
    (void)state;
    trial_texts(&eqds_congestion,
                (const char *const[]){"", "window=64KiB", "rate=10Gbit", "rate=10Gbit,window=1MiB", NULL},
                (const char *const[]){"window=1", "window=2GB", "rate=10", "credits=7", NULL});
}

static int run_eqds(void)
{
    const struct CMUnitTest tests[] = {
        TRIAL_TESTS(&subject),
        cmocka_unit_test(test_credits),
        cmocka_unit_test(test_absurd_credits),
        cmocka_unit_test(test_untimed_arrivals),
        cmocka_unit_test(test_incast),
        cmocka_unit_test(test_told_pace),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test eqds receiver ---------------------------------------------------------------------------- */

/* Credits of the receiver's half. */

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

static int run_eqds_receiver(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_window), cmocka_unit_test(test_pace),  cmocka_unit_test(test_window),
        cmocka_unit_test(test_pause),        cmocka_unit_test(test_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_eqds() + run_eqds_receiver();
}
