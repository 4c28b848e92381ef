/*
 * test_dcqcn_control.c - DCQCN as a controller.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/dcqcn_control.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/controller_trial.h"

static struct trial_subject subject = {&dcqcn_congestion, 0.25};

static uint64_t rate(const void *control)
{
    return trial_decide(&dcqcn_congestion, control).rate_bps;
}

static void report(void *control, lh_time now, uint64_t marked_bytes, uint32_t notifications)
{
    struct lh_congestion_feedback feedback = {.now = now,
                                              .arrived_bytes = 10 * TRIAL_MTU,
                                              .marked_bytes = marked_bytes,
                                              .notifications = notifications,
                                              .arrived_total_bytes = now,
                                              .arrived_at_send_bytes = now - LH_NS_PER_MS,
                                              .rtt_ns = trial_path.rtt_ns,
                                              .rate_bps = TRIAL_GBIT};
    dcqcn_congestion.on_feedback(control, &feedback);
}

/* The told rate until the first notification, which halves it a round trip later; then up again. A mark is a
 * notification. */
static void test_rate(void **state)
{
    (void)state;
    for (int marks = 0; marks < 2; marks++) {
        _Alignas(64) uint8_t control[512];
        struct lh_congestion_path told = trial_path;
        lh_time now = LH_NS_PER_S;
        told.rate_bps = TRIAL_GBIT;
        dcqcn_congestion.start(control, &told, trial_no_params, now);
        report(control, now += trial_path.rtt_ns, 0, 0);
        assert_int_equal(rate(control), TRIAL_GBIT);
        report(control, now += trial_path.rtt_ns, marks ? TRIAL_MTU : 0, marks ? 0 : 1);
        lh_time cut_ns = trial_decide(&dcqcn_congestion, control).next_ns;
        assert_int_equal(cut_ns, now + trial_path.rtt_ns);
        dcqcn_congestion.on_timer(control, cut_ns);
        assert_true(rate(control) > TRIAL_GBIT / 2 &&
                    rate(control) < TRIAL_GBIT * 54 / 100); /* alpha: 15 / 16 */
        uint64_t before = rate(control);
        for (int i = 0; i < 4; i++)
            report(control, now += trial_path.rtt_ns, 0, 0);
        assert_true(rate(control) > before + before / 2 && rate(control) <= TRIAL_GBIT);
    }
}

/* Hours without a report raise the rate to no more than twice what was delivered. */
static void test_pause(void **state)
{
    (void)state;
    _Alignas(64) uint8_t control[512];
    lh_time now = LH_NS_PER_S;
    dcqcn_congestion.start(control, &trial_path, trial_no_params, now);
    report(control, now += trial_path.rtt_ns, TRIAL_MTU, 0);
    report(control, now += trial_path.rtt_ns, 0, 0);
    dcqcn_congestion.on_timer(control, now + 5 * 3600 * LH_NS_PER_S);
    assert_true(rate(control) <= 2 * TRIAL_GBIT);
}

/* Where nothing marks, a full queue is found by its delay and its losses. */
static void test_no_marks(void **state)
{
    (void)state;
    struct trial trial = {.controller = &dcqcn_congestion,
                          .rate_bps = 2 * TRIAL_GBIT,
                          .rtt_ns = 25 * LH_NS_PER_MS,
                          .queue = 4,
                          .loss = 0.01,
                          .flows = 1,
                          .rounds = 300};
    struct trial_result result = trial_run(&trial);
    assert_true(result.goodput > 0.7 && result.peak < 3 && result.dropped == 0);
}

static void test_end_of_doubling_with_little_to_send(void **state)
{
    (void)state;
    trial_little_to_send(&dcqcn_congestion);
}

static void test_texts(void **state)
{
    (void)state;
    trial_texts(
        &dcqcn_congestion,
        (const char *const[]){"", "step=40Mbit", "increase=55us", "step=40Mbit,increase=1ms", NULL},
        (const char *const[]){"step=1kbit", "step=40", "increase=0", "gain=1", "step=1Mbit,", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRIAL_TESTS(&subject),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_no_marks),
        cmocka_unit_test(test_end_of_doubling_with_little_to_send),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
