/*
 * test_wheel.c - timers expire at their tick, in their order, whatever else is set, moved and canceled.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "xp/wheel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),           cmocka_unit_test(test_past),   cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_idle_for_long), cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
