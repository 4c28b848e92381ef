/*
 * test_swift.c - control by delay.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/controllers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/controller_trial.h"

static struct trial_subject subject = {&swift_congestion, 0};

/* Doubles until a queue forms, grows slowly below the target, and falls by no more than half above it. */
static void test_window(void **state)
{
    (void)state;
    _Alignas(64) uint8_t swift[512];
    uint64_t arrived = 0;
    swift_congestion.start(swift, &trial_path, trial_no_params, 1);
    uint64_t window = trial_decide(&swift_congestion, swift).window_bytes;
    assert_int_equal(window, 10 * TRIAL_MTU);
    for (int i = 0; i < 6; i++) {
        trial_round(&swift_congestion, swift, &arrived, 0);
        uint64_t grown = trial_decide(&swift_congestion, swift).window_bytes;
        assert_true(grown > window * 18 / 10 && grown < window * 29 / 10); /* e in the limit */
        window = grown;
    }
    trial_round(&swift_congestion, swift, &arrived, 4 * LH_NS_PER_MS); /* ends it */
    window = trial_decide(&swift_congestion, swift).window_bytes;
    for (int i = 0; i < 3; i++)
        trial_round(&swift_congestion, swift, &arrived, LH_NS_PER_MS / 2);
    uint64_t grown = trial_decide(&swift_congestion, swift).window_bytes;
    assert_true(grown > window && grown < window + window / 4);
    for (int i = 0; i < 2; i++) /* one of two may be from before a cut */
        trial_round(&swift_congestion, swift, &arrived, 100 * LH_NS_PER_MS);
    uint64_t cut = trial_decide(&swift_congestion, swift).window_bytes;
    assert_true(cut >= grown / 2 - 1 && cut < grown * 6 / 10);
}

/* A told target is what a single flow's queue is about. */
static void test_target(void **state)
{
    (void)state;
    struct trial trial = {.controller = &swift_congestion,
                          .rate_bps = 2 * TRIAL_GBIT,
                          .rtt_ns = 25 * LH_NS_PER_MS,
                          .queue = 2,
                          .flows = 1,
                          .rounds = 300};
    double by_path = trial_run(&trial).delay;
    trial.params = "target=5ms"; /* 0.2 round trips, times 2 to 3 by the window */
    double given = trial_run(&trial).delay;
    assert_true(by_path < 0.15 && given > 0.4 && given < 0.7);
}

static void test_end_of_doubling_with_little_to_send(void **state)
{
    (void)state;
    trial_little_to_send(&swift_congestion);
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
        TRIAL_TESTS(&subject),         cmocka_unit_test(test_window),
        cmocka_unit_test(test_target), cmocka_unit_test(test_end_of_doubling_with_little_to_send),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
