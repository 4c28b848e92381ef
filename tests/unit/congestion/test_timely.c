/*
 * test_timely.c - control by the delay's gradient.
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

static struct trial_subject subject = {&timely_congestion, 0};

static uint64_t rate(const void *timely)
{
    return trial_decide(&timely_congestion, timely).rate_bps;
}

/* Doubles until a queue forms; then up below low, down above high. */
static void test_rate(void **state)
{
    (void)state;
    _Alignas(64) uint8_t timely[512];
    uint64_t arrived = 0;
    timely_congestion.start(timely, &trial_path, trial_no_params, 1);
    uint64_t first = rate(timely);
    assert_true(first > 32 * TRIAL_GBIT / 1000 && first < 33 * TRIAL_GBIT / 1000); /* 10 packets in 10 ms */
    for (int i = 0; i < 6; i++)
        trial_round(&timely_congestion, timely, &arrived, 0);
    assert_true(rate(timely) > 40 * first);
    trial_round(&timely_congestion, timely, &arrived, 4 * LH_NS_PER_MS); /* ends it */
    trial_round(&timely_congestion, timely, &arrived, 0);
    uint64_t before = rate(timely);
    trial_round(&timely_congestion, timely, &arrived, 0);
    assert_true(rate(timely) > before && rate(timely) < before + before / 4);
    before = rate(timely);
    trial_round(&timely_congestion, timely, &arrived, 20 * LH_NS_PER_MS);
    assert_true(rate(timely) < before * 8 / 10 && rate(timely) > before / 5);
}

/* Between low and high: the same delay, but rising or falling. */
static void test_gradient(void **state)
{
    (void)state;
    uint64_t rates[2];
    for (int rising = 0; rising < 2; rising++) {
        _Alignas(64) uint8_t timely[512];
        uint64_t arrived = 0;
        timely_congestion.start(timely, &trial_path, trial_no_params, 1);
        for (int i = 0; i < 5; i++)
            trial_round(&timely_congestion, timely, &arrived, 0);
        trial_round(&timely_congestion, timely, &arrived, 4 * LH_NS_PER_MS);
        for (int i = 0; i < 3; i++)
            trial_round(&timely_congestion, timely, &arrived,
                        rising ? 300 * LH_NS_PER_US : 3 * LH_NS_PER_MS);
        uint64_t before = rate(timely);
        trial_round(&timely_congestion, timely, &arrived, 1200 * LH_NS_PER_US);
        rates[rising] = rate(timely) * 1000 / before;
    }
    assert_true(rates[1] < rates[0]);
}

static void test_end_of_doubling_with_little_to_send(void **state)
{
    (void)state;
    trial_little_to_send(&timely_congestion);
}

static void test_texts(void **state)
{
    (void)state;
    trial_texts(
        &timely_congestion,
        (const char *const[]){"", "low=50us", "high=500us", "low=50us,high=500us", "high=2us,low=1us",
                              NULL},
        (const char *const[]){"low=500us,high=50us", "low=1ms,high=1ms", "mid=1ms", "low=0", "high", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRIAL_TESTS(&subject),           cmocka_unit_test(test_rate),
        cmocka_unit_test(test_gradient), cmocka_unit_test(test_end_of_doubling_with_little_to_send),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
