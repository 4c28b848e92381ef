/*
 * test_netsim_port.c - the delay of a cable that gets longer and shorter.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "base/error.h"
#include "netsim/base/netsim_time.h"
#include "netsim/engine/netsim_port.h"

/* ---- test drift ------------------------------------------------------------------------------------ */

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
        netsim_time max_ps = 0;
        netsim_time before_ps = 0;
        netsim_time step_ps = cases[i][1] / 100000 + 1;
        netsim_drift_init(&drift, cases[i][0], cases[i][1]);
        for (netsim_time at_ps = 0; at_ps < 2 * cases[i][1]; at_ps += step_ps) {
            netsim_time longer_ps = netsim_drift_at(&drift, at_ps);
            assert_true(at_ps + longer_ps >= before_ps);
            before_ps = at_ps + longer_ps;
            max_ps = longer_ps > max_ps ? longer_ps : max_ps;
        }
        assert_in_range(max_ps, cases[i][0] - cases[i][0] / 1000 - (step_ps > 1), cases[i][0]);
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

static int run_drift(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_up_in_a_line_and_down_again),
        cmocka_unit_test(stays_without_a_drift),
        cmocka_unit_test(nothing_overtakes),
        cmocka_unit_test(refuses_what_would_overtake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test signal loss ------------------------------------------------------------------------------ */

/* Which signals of a long link are lost. */

#define DRAWS 200000u

static unsigned count_lost(const struct netsim_long_config *config, unsigned *bursts)
{
    struct netsim_signal_loss loss;
    unsigned lost = 0;
    bool before = false;
    netsim_signal_loss_init(&loss, config, 7);
    for (unsigned i = 0; i < DRAWS; i++) {
        bool is_lost = netsim_signal_is_lost(&loss, i * NETSIM_PS_PER_US);
        lost += is_lost;
        *bursts += is_lost && !before;
        before = is_lost;
    }
    return lost;
}

static void a_share_of_them_is_lost(void **state)
{
    (void)state;
    struct netsim_long_config config = {.signal_loss = 0.1, .signal_burst = 1};
    unsigned bursts = 0;
    assert_in_range(count_lost(&config, &bursts), DRAWS / 10 - 600, DRAWS / 10 + 600);
    assert_in_range(bursts, DRAWS * 9 / 100 - 600, DRAWS * 9 / 100 + 600);
    config.signal_burst = 20;
    bursts = 0;
    assert_in_range(count_lost(&config, &bursts), DRAWS / 10 - 4000, DRAWS / 10 + 4000);
    assert_in_range(bursts, DRAWS / 200 - 200, DRAWS / 200 + 200);
}

static void in_an_outage_all_are_lost_and_else_none(void **state)
{
    (void)state;
    const struct netsim_long_config config = {.mute_from_ps = 1000, .mute_for_ps = 50};
    struct netsim_signal_loss loss;
    netsim_signal_loss_init(&loss, &config, 1);
    assert_false(netsim_signal_is_lost(&loss, 999));
    assert_true(netsim_signal_is_lost(&loss, 1000));
    assert_true(netsim_signal_is_lost(&loss, 1049));
    assert_false(netsim_signal_is_lost(&loss, 1050));
}

static void nothing_set_loses_nothing(void **state)
{
    (void)state;
    const struct netsim_long_config config = {.signal_burst = 5, .mute_from_ps = 1};
    assert_false(netsim_signals_suffer(&config));
    assert_int_equal(netsim_signal_loss_check(&config), 0);
    assert_true(netsim_signals_suffer(&(struct netsim_long_config){.signal_loss = 0.01}));
    assert_true(netsim_signals_suffer(&(struct netsim_long_config){.mute_for_ps = 1}));
}

static void refused(double loss, double burst, const char *key)
{
    const struct netsim_long_config config = {.signal_loss = loss, .signal_burst = burst};
    assert_true(netsim_signal_loss_check(&config) < 0);
    assert_non_null(strstr(lh_last_error(), key));
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    refused(0.91, 1, "long.signal_loss 0.91: out of range (at most 0.9");
    refused(0.1, 0.5, "long.signal_burst 0.5");
    refused(0.7, 2, "long.signal_burst = 2 at most 0.66");
    const struct netsim_long_config maximum = {.signal_loss = 0.9, .signal_burst = 9};
    assert_int_equal(netsim_signal_loss_check(&maximum), 0);
}

static int run_signal_loss(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_of_them_is_lost),
        cmocka_unit_test(in_an_outage_all_are_lost_and_else_none),
        cmocka_unit_test(nothing_set_loses_nothing),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_drift() + run_signal_loss();
}
