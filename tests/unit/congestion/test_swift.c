/*
 * test_swift.c - control by delay.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/swift.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/controller_trial.h"

static void test_paths(void **state)
{
    (void)state;
    trial_paths(&swift_congestion, 0);
}

static void test_fairness(void **state)
{
    (void)state;
    trial_fairness(&swift_congestion, 0);
}

static void test_hostile(void **state)
{
    (void)state;
    trial_hostile(&swift_congestion);
}

static void test_state_is_small(void **state)
{
    (void)state;
    assert_true(swift_congestion.state_bytes <= 384);
}

#define MTU  4096
#define GBIT UINT64_C(1000000000)

static const struct lh_congestion_path path = {.mtu_bytes = MTU,
                                               .rate_max_bps = LH_RATE_NONE,
                                               .window_max_bytes = UINT64_C(1) << 30,
                                               .rtt_ns = 10 * LH_NS_PER_MS};
static const uint8_t no_params[LH_CONGESTION_PARAMS];

static struct lh_congestion_decision decide(const struct lh_congestion *controller, const void *state)
{
    struct lh_congestion_decision decision;
    controller->decide(state, 1, &decision);
    return decision;
}

/* A window of packets arrives with that delay above the minimum, reported in 16 parts. */
static void run_round(const struct lh_congestion *controller, void *state, uint64_t *arrived,
                      lh_time queue_ns)
{
    uint64_t window = decide(controller, state).window_bytes, before = *arrived;
    for (int i = 1; i <= 16; i++) {
        *arrived += window / 16;
        struct lh_congestion_feedback feedback = {
            .now = *arrived,
            .arrived_bytes = window / 16,
            .arrived_total_bytes = *arrived,
            .arrived_at_send_bytes = i < 16 ? 0 : before,
            .in_flight_at_send_bytes = window,
            .rtt_ns = path.rtt_ns + queue_ns,
            .rate_bps = window * 8 * LH_NS_PER_S / (path.rtt_ns + queue_ns),
            .credit_bytes = UINT64_MAX,
        };
        controller->on_feedback(state, &feedback);
    }
}

/* Doubles until a queue forms, grows slowly below the target, and falls by no more than half above it. */
static void test_window(void **state)
{
    (void)state;
    _Alignas(64) uint8_t swift[512];
    uint64_t arrived = 0;
    swift_congestion.start(swift, &path, no_params, 1);
    uint64_t window = decide(&swift_congestion, swift).window_bytes;
    assert_int_equal(window, 10 * MTU);
    for (int i = 0; i < 6; i++) {
        run_round(&swift_congestion, swift, &arrived, 0);
        uint64_t grown = decide(&swift_congestion, swift).window_bytes;
        assert_true(grown > window * 18 / 10 && grown < window * 29 / 10); /* e in the limit */
        window = grown;
    }
    run_round(&swift_congestion, swift, &arrived, 4 * LH_NS_PER_MS); /* ends it */
    window = decide(&swift_congestion, swift).window_bytes;
    for (int i = 0; i < 3; i++)
        run_round(&swift_congestion, swift, &arrived, LH_NS_PER_MS / 2);
    uint64_t grown = decide(&swift_congestion, swift).window_bytes;
    assert_true(grown > window && grown < window + window / 4);
    for (int i = 0; i < 2; i++) /* one of two may be from before a cut */
        run_round(&swift_congestion, swift, &arrived, 100 * LH_NS_PER_MS);
    uint64_t cut = decide(&swift_congestion, swift).window_bytes;
    assert_true(cut >= grown / 2 - 1 && cut < grown * 6 / 10);
}

/* A told target is what a single flow's queue is about. */
static void test_target(void **state)
{
    (void)state;
    struct trial trial = {.controller = &swift_congestion,
                          .rate_bps = 2 * GBIT,
                          .rtt_ns = 25 * LH_NS_PER_MS,
                          .queue = 2,
                          .flows = 1,
                          .rounds = 300};
    double by_path = trial_run(&trial).delay;
    trial.params = "target=5ms"; /* 0.2 round trips, times 2 to 3 by the window */
    double told = trial_run(&trial).delay;
    assert_true(by_path < 0.15 && told > 0.4 && told < 0.7);
}

static void test_texts(void **state)
{
    (void)state;
    trial_texts(&swift_congestion, (const char *const[]){"", "target=200us", "target=10s", NULL},
                (const char *const[]){"target", "target=", "target=0", "target=1min", "target=200",
                                      "goal=1ms", "target=1ms,target=1ms", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),   cmocka_unit_test(test_fairness),
        cmocka_unit_test(test_hostile), cmocka_unit_test(test_state_is_small),
        cmocka_unit_test(test_window),  cmocka_unit_test(test_target),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
