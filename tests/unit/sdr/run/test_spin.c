/*
 * test_spin.c - a worker spins where pauses are short, and no longer where they are not.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/run/spin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define US LH_NS_PER_US

static lh_time now;

/* As a worker does: spins, or sleeps, until work comes after the pause. Returns whether it slept. */
static bool pause_of(struct spin *spin, lh_time pause_ns)
{
    lh_time start = now;
    bool slept = false;
    for (; now < start + pause_ns; now += US)
        if (!slept && spin_is_over(spin, now)) {
            spin_on_sleep(spin);
            slept = true;
        }
    spin_on_work(spin, now);
    return slept;
}

static void start(struct spin *spin)
{
    now = LH_NS_PER_S;
    spin_init(spin, SPIN_NS);
    spin_on_work(spin, now);
}

static void test_short_pauses_are_spun_through(void **state)
{
    (void)state;
    struct spin spin;
    start(&spin);
    for (int i = 0; i < 100; i++)
        assert_false(pause_of(&spin, 40 * US));
    /* A long one now and then changes nothing. */
    assert_true(pause_of(&spin, LH_NS_PER_S));
    assert_false(pause_of(&spin, 40 * US));
}

static void test_long_pauses_are_slept_through(void **state)
{
    (void)state;
    struct spin spin;
    start(&spin);
    for (int i = 0; i < 4; i++)
        pause_of(&spin, 125 * US);
    lh_time before = now;
    assert_true(spin_is_over(&spin, before));
    /* Rounds that find work at once are no pauses. */
    for (int i = 0; i < 100; i++)
        pause_of(&spin, US);
    assert_true(spin_is_over(&spin, now));
}

/* Two that answer each other sleep both, and the pause is longer by that: still they find back. */
static void test_sleepers_find_back(void **state)
{
    (void)state;
    struct spin spin;
    start(&spin);
    for (int i = 0; i < 20; i++)
        pause_of(&spin, LH_NS_PER_MS);
    bool slept = true;
    for (int i = 0; i < 20 && slept; i++)
        slept = pause_of(&spin, 90 * US);
    assert_false(spin_is_over(&spin, now));
}

static void test_length_is_an_attribute(void **state)
{
    (void)state;
    struct spin spin;
    assert_int_equal(spin_ns_of(0), SPIN_NS);
    assert_int_equal(spin_ns_of(LH_NO_SPIN), 0);
    assert_int_equal(spin_ns_of(7 * US), 7 * US);
    start(&spin);
    spin.spin_ns = 200 * US;
    for (int i = 0; i < 20; i++)
        assert_false(pause_of(&spin, 190 * US));
    assert_true(pause_of(&spin, 210 * US));
    start(&spin);
    spin.spin_ns = 0;
    for (int i = 0; i < 20; i++)
        assert_true(pause_of(&spin, 6 * US));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_pauses_are_spun_through),
        cmocka_unit_test(test_long_pauses_are_slept_through),
        cmocka_unit_test(test_sleepers_find_back),
        cmocka_unit_test(test_length_is_an_attribute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
