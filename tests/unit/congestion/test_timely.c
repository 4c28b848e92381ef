/*
 * test_timely.c - control by the delay's gradient.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/timely.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/controller_trial.h"

static void test_paths(void **state)
{
    (void)state;
    trial_paths(&timely_congestion, 0);
}

static void test_fairness(void **state)
{
    (void)state;
    trial_fairness(&timely_congestion, 0);
}

static void test_hostile(void **state)
{
    (void)state;
    trial_hostile(&timely_congestion);
}

static void test_state_is_small(void **state)
{
    (void)state;
    assert_true(timely_congestion.state_bytes <= 384);
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

static uint64_t rate(const void *timely)
{
    return decide(&timely_congestion, timely).rate_bps;
}

/* Doubles until a queue forms; then up below low, down above high. */
static void test_rate(void **state)
{
    (void)state;
    _Alignas(64) uint8_t timely[512];
    uint64_t arrived = 0;
    timely_congestion.start(timely, &path, no_params, 1);
    uint64_t first = rate(timely);
    assert_true(first > 32 * GBIT / 1000 && first < 33 * GBIT / 1000); /* 10 packets in 10 ms */
    for (int i = 0; i < 6; i++)
        run_round(&timely_congestion, timely, &arrived, 0);
    assert_true(rate(timely) > 40 * first);
    run_round(&timely_congestion, timely, &arrived, 4 * LH_NS_PER_MS); /* ends it */
    run_round(&timely_congestion, timely, &arrived, 0);
    uint64_t before = rate(timely);
    run_round(&timely_congestion, timely, &arrived, 0);
    assert_true(rate(timely) > before && rate(timely) < before + before / 4);
    before = rate(timely);
    run_round(&timely_congestion, timely, &arrived, 20 * LH_NS_PER_MS);
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
        timely_congestion.start(timely, &path, no_params, 1);
        for (int i = 0; i < 5; i++)
            run_round(&timely_congestion, timely, &arrived, 0);
        run_round(&timely_congestion, timely, &arrived, 4 * LH_NS_PER_MS);
        for (int i = 0; i < 3; i++)
            run_round(&timely_congestion, timely, &arrived, rising ? 300 * LH_NS_PER_US : 3 * LH_NS_PER_MS);
        uint64_t before = rate(timely);
        run_round(&timely_congestion, timely, &arrived, 1200 * LH_NS_PER_US);
        rates[rising] = rate(timely) * 1000 / before;
    }
    assert_true(rates[1] < rates[0]);
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
        cmocka_unit_test(test_paths),   cmocka_unit_test(test_fairness),
        cmocka_unit_test(test_hostile), cmocka_unit_test(test_state_is_small),
        cmocka_unit_test(test_rate),    cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
