/*
 * test_eqds.c - the sender's half of credits, and both halves through a bottleneck.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/eqds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/controller_trial.h"

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

int main(void)
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
