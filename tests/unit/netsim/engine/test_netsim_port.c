/*
 * test_signal_loss.c - which signals of a long link are lost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/engine/signal_loss.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "netsim/base/time.h"

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
    const struct netsim_long_config most = {.signal_loss = 0.9, .signal_burst = 9};
    assert_int_equal(netsim_signal_loss_check(&most), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_of_them_is_lost),
        cmocka_unit_test(in_an_outage_all_are_lost_and_else_none),
        cmocka_unit_test(nothing_set_loses_nothing),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
