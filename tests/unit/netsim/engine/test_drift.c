/*
 * test_drift.c - the delay of a cable that gets longer and shorter.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/engine/drift.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static void goes_up_in_a_line_and_down_again(void **state)
{
    (void)state;
    struct netsim_drift drift;
    netsim_drift_init(&drift, 1000, 16000);
    static const netsim_time at_ps[] = {0, 7, 8, 4000, 8000, 8008, 12000, 15992, 15999, 16000, 16800};
    static const netsim_time longer_ps[] = {0, 0, 1, 500, 1000, 999, 500, 1, 0, 0, 100};
    for (size_t i = 0; i < sizeof at_ps / sizeof at_ps[0]; i++)
        assert_int_equal(netsim_drift_at(&drift, at_ps[i]), longer_ps[i]);
}

static void stays_without_a_drift(void **state)
{
    (void)state;
    struct netsim_drift drift;
    netsim_drift_init(&drift, 0, 16000);
    for (netsim_time at_ps = 0; at_ps < 100000; at_ps += 777)
        assert_int_equal(netsim_drift_at(&drift, at_ps), 0);
}

/* The steepest slope, odd periods, and a day warmer by 10 K on 600 km within an hour. */
static void nothing_overtakes(void **state)
{
    (void)state;
    static const netsim_time cases[][2] = {
        {999, 2000}, {999, 2001}, {1, 4}, {1000, 3001}, {240000, 3600 * NETSIM_PS_PER_S}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct netsim_drift drift;
        netsim_time most_ps = 0;
        netsim_time before_ps = 0;
        netsim_time step_ps = cases[i][1] / 100000 + 1;
        netsim_drift_init(&drift, cases[i][0], cases[i][1]);
        for (netsim_time at_ps = 0; at_ps < 2 * cases[i][1]; at_ps += step_ps) {
            netsim_time longer_ps = netsim_drift_at(&drift, at_ps);
            assert_true(at_ps + longer_ps >= before_ps);
            before_ps = at_ps + longer_ps;
            most_ps = longer_ps > most_ps ? longer_ps : most_ps;
        }
        assert_in_range(most_ps, cases[i][0] - cases[i][0] / 1000 - (step_ps > 1), cases[i][0]);
    }
}

static void refuses_what_would_overtake(void **state)
{
    (void)state;
    assert_int_equal(netsim_drift_check(0, 2), 0);
    assert_int_equal(netsim_drift_check(1000, 2002), 0);
    assert_int_equal(netsim_drift_check(1000, 2001), -LH_EINVAL);
    assert_int_equal(netsim_drift_check(NETSIM_PS_PER_MS, NETSIM_PS_PER_MS), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "long.drift_period 1ms"));
    assert_non_null(strstr(lh_last_error(), "set more than 2ms"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_up_in_a_line_and_down_again),
        cmocka_unit_test(stays_without_a_drift),
        cmocka_unit_test(nothing_overtakes),
        cmocka_unit_test(refuses_what_would_overtake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
