/*
 * test_xp_pacing.c - dCQCN in 32 bytes: the rate of the one with all its bits, and no packet ahead of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "xp/xp_pacing.h"

/* ---- test rate ------------------------------------------------------------------------------------- */

#define GBIT UINT64_C(1000000000)

static const uint64_t lines[] = {1000000, 10 * GBIT, 400 * GBIT, 4000 * GBIT};
#define LINES (sizeof lines / sizeof lines[0])

/* Notifications in bursts and alone, after silences of up to a minute; at whole units of time, since whether
 * one falls before or after a cut changes all that follows. */
static void test_as_dcqcn(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 3);
    for (unsigned line = 0; line < LINES; line++) {
        struct xp_rate_config config;
        struct xp_rate rate;
        struct dcqcn reference;
        lh_time now = (lh_time)1 << 40;
        xp_rate_config_init(&config, lines[line]);
        xp_rate_start(&rate, &config, now);
        dcqcn_init(&reference, lines[line]);
        double worst = 0;
        for (int i = 0; i < 20000; i++) {
            now += 8 * lh_prng_below(&prng, (uint64_t)1 << lh_prng_below(&prng, i % 100 ? 17 : 33));
            if (lh_prng_chance(&prng, 0.5)) {
                xp_rate_on_notification(&rate, &config, now);
                dcqcn_on_cnp(&reference, &config.dcqcn, now);
            } else {
                xp_rate_on_sent(&rate, &config, 4096, now);
            }
            dcqcn_on_time(&reference, &config.dcqcn, now);
            double off = (double)xp_rate_bps(&rate, &config, now) / (double)reference.rate_bps - 1;
            worst = fmax(worst, fabs(off));
        }
        print_message("%.0f Mbit/s: at most %.2g %% off\n", (double)lines[line] / 1e6, 100 * worst);
        assert_true(worst < 0.02);
    }
}

/* Seconds of packets as fast as they may: the rate, and at no time more than a burst ahead of it. */
static void test_pace(void **state)
{
    (void)state;
    for (unsigned line = 0; line < LINES; line++) {
        struct xp_rate_config config;
        struct xp_rate rate;
        lh_time now = 12345, next, start = now;
        uint64_t sent = 0, packets = lines[line] > GBIT ? 200000 : 300;
        xp_rate_config_init(&config, lines[line]);
        xp_rate_start(&rate, &config, now);
        for (uint64_t i = 0; i < packets; i++) {
            if (!xp_rate_may_send(&rate, &config, now, &next))
                now = next;
            assert_true(xp_rate_may_send(&rate, &config, now, &next));
            sent += 4000;
            xp_rate_on_sent(&rate, &config, 4000, now);
        }
        double bps = (double)sent * 8e9 / (double)(now - start + 1);
        assert_true(bps < 1.01 * (double)lines[line] || lines[line] == 4000 * GBIT);
        assert_true(bps > 0.99 * (double)lines[line]);
    }
}

/* What has been idle, for however long, sends at once, and no burst of all that time. */
static void test_idle(void **state)
{
    (void)state;
    struct xp_rate_config config;
    struct xp_rate rate;
    lh_time next;
    xp_rate_config_init(&config, 10 * GBIT);
    for (lh_time idle = LH_NS_PER_S; idle < 100 * LH_NS_PER_S; idle += 777 * LH_NS_PER_MS) {
        lh_time now = (lh_time)1 << 33;
        xp_rate_start(&rate, &config, now);
        xp_rate_on_notification(&rate, &config, now);
        xp_rate_on_sent(&rate, &config, 4000, now);
        now += idle;
        assert_true(xp_rate_may_send(&rate, &config, now, &next) || next - now < 350 * LH_NS_PER_US);
        uint64_t burst = 0;
        while (xp_rate_may_send(&rate, &config, now, &next)) {
            xp_rate_on_sent(&rate, &config, 4000, now);
            burst += 4000;
        }
        assert_true(burst < 10 * GBIT / 8 / 4000 + 8000); /* 250 us */
    }
}

static int run_rate(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_dcqcn),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test wheel ------------------------------------------------------------------------------------ */

/* Timers expire at their tick, in their order, whatever else is set, moved and canceled. */

#define TIMERS 300u
#define TICK   ((lh_time)1000)

static struct wheel wheel;
static struct wheel_timer timers[TIMERS];
static uint32_t due[TIMERS];

static void start(lh_time now)
{
    wheel_init(&wheel, TICK, now, TIMERS, timers, due);
}

static void test_one(void **state)
{
    (void)state;
    static const lh_time delays[] = {
        1,      999,      1000,     1001,     255000,   256000,           256001,
        257000, 65535000, 65536000, 65536001, 99999999, (lh_time)1 << 35, (lh_time)1 << 40};
    static const lh_time starts[] = {
        0, 999, 1000, 255 * TICK, 65535 * TICK + 7, (lh_time)0xFFFFFFF0 * TICK};
    for (unsigned s = 0; s < sizeof starts / sizeof starts[0]; s++) {
        for (unsigned d = 0; d < sizeof delays / sizeof delays[0]; d++) {
            lh_time at = starts[s] + delays[d];
            lh_time tick = (at + TICK - 1) / TICK * TICK;
            start(starts[s]);
            assert_int_equal(wheel_next(&wheel), LH_TIME_NEVER);
            wheel_set(&wheel, 7, at, starts[s]);
            assert_true(wheel_next(&wheel) <= tick);
            assert_int_equal(wheel_expired(&wheel, tick - 1), WHEEL_NONE);
            assert_true(wheel_next(&wheel) <= tick);
            assert_int_equal(wheel_expired(&wheel, tick), 7);
            assert_int_equal(wheel_expired(&wheel, tick), WHEEL_NONE);
            assert_int_equal(wheel_next(&wheel), LH_TIME_NEVER);
        }
    }
}

/* What is already past expires at the next tick. */
static void test_past(void **state)
{
    (void)state;
    start(50 * TICK);
    wheel_set(&wheel, 1, 3 * TICK, 50 * TICK);
    assert_int_equal(wheel_expired(&wheel, 50 * TICK), WHEEL_NONE);
    assert_int_equal(wheel_expired(&wheel, 51 * TICK), 1);
}

static void test_cancel(void **state)
{
    (void)state;
    start(0);
    for (uint32_t i = 0; i < 3; i++)
        wheel_set(&wheel, i, 5 * TICK, 0);
    wheel_cancel(&wheel, 1);
    wheel_cancel(&wheel, 1);
    wheel_cancel(&wheel, 99);
    wheel_set(&wheel, 2, 900 * TICK, 0);
    assert_int_equal(wheel_expired(&wheel, 899 * TICK), 0);
    assert_int_equal(wheel_expired(&wheel, 899 * TICK), WHEEL_NONE);
    assert_int_equal(wheel_expired(&wheel, 900 * TICK), 2);
    assert_int_equal(wheel.armed, 0);
}

/* Nobody asks an idle wheel; the first timer after that is not early. */
static void test_idle_for_long(void **state)
{
    (void)state;
    lh_time now = ((lh_time)1 << 33) * TICK;
    start(0);
    wheel_set(&wheel, 1, now + 5 * TICK, now);
    assert_int_equal(wheel_expired(&wheel, now + 5 * TICK - 1), WHEEL_NONE);
    assert_int_equal(wheel_expired(&wheel, now + 5 * TICK), 1);
}

/* Against a list that is searched. */
static void test_random(void **state)
{
    (void)state;
    static lh_time expected[TIMERS]; /* LH_TIME_NEVER: not set */
    struct lh_prng prng;
    lh_prng_seed(&prng, 11);
    lh_time now = (lh_time)0xFFFFF000 * TICK; /* past the wrap of 32 bits */
    start(now);
    memset(expected, 0xFF, sizeof expected);
    for (int i = 0; i < 200000; i++) {
        uint32_t timer = (uint32_t)lh_prng_below(&prng, TIMERS);
        lh_time at = now + lh_prng_below(&prng, (uint64_t)1 << lh_prng_below(&prng, 37));
        switch (lh_prng_below(&prng, 4)) {
        case 0:
            wheel_cancel(&wheel, timer);
            expected[timer] = LH_TIME_NEVER;
            break;
        case 1:
            now += lh_prng_below(&prng, (uint64_t)1 << lh_prng_below(&prng, 28));
            break;
        default:
            wheel_set(&wheel, timer, at, now);
            expected[timer] = at / TICK < now / TICK + 1 && at % TICK == 0 ? (now / TICK + 1) * TICK : at;
            if (expected[timer] <= now / TICK * TICK)
                expected[timer] = (now / TICK + 1) * TICK;
        }
        for (uint32_t t; (t = wheel_expired(&wheel, now)) != WHEEL_NONE;) {
            assert_true(expected[t] <= now / TICK * TICK);
            expected[t] = LH_TIME_NEVER;
        }
        lh_time earliest = LH_TIME_NEVER;
        for (uint32_t t = 0; t < TIMERS; t++) {
            assert_true(expected[t] > now / TICK * TICK);
            earliest = expected[t] < earliest ? expected[t] : earliest;
        }
        assert_true(earliest == LH_TIME_NEVER ? wheel_next(&wheel) == LH_TIME_NEVER
                                              : wheel_next(&wheel) <= (earliest + TICK - 1) / TICK * TICK);
    }
}

static int run_wheel(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),           cmocka_unit_test(test_past),   cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_idle_for_long), cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_rate() + run_wheel();
}
