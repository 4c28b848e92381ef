/*
 * test_buffer_needs.c - the closed forms, at the settings of the Bifrost paper.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/flowcontrol.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* 400 Gbit/s over 600 km. */
static const struct lh_flow_link long_link = {400000000000, 3000000, 10000, 1, 1500};
/* 100 Gbit/s over 80 km: the testbed. */
static const struct lh_flow_link testbed = {100000000000, 400000, 10000, 1, 1500};

static void a_long_link(void **state)
{
    (void)state;
    struct lh_flow_needs needs;
    assert_int_equal(lh_flow_needs(&long_link, &needs), 0);
    assert_int_equal(needs.bdp_bytes, 300000000);
    assert_int_equal(needs.pfc_headroom_bytes, 300003064);
    assert_int_equal(needs.pfc_xoff_bytes, 300003000);
    assert_int_equal(needs.pfc_buffer_bytes, 600006064); /* two BDP */
    assert_int_equal(needs.bifrost_h_bytes, 300000000 + 2 * 500000 + 64);
    /* 600 slots and four, a packet of headroom, what a pause waits behind. */
    assert_int_equal(needs.bifrost_buffer_bytes, needs.bifrost_h_bytes + 605 * 1500 + 1564);
    assert_int_equal(needs.swing_relay_bytes, 300003064);
    assert_true(needs.cbfc_buffer_bytes >= 300000000 * 1.024 && needs.cbfc_buffer_bytes < 307300000);
    assert_false(needs.cbfc_fits_12_bits);
}

/* The testbed's PFC has xoff of 6 MiB, less than it would need, and a BDP of headroom. The paper counts H
 * only. */
static void the_testbed_saves_37_percent(void **state)
{
    (void)state;
    struct lh_flow_needs needs;
    assert_int_equal(lh_flow_needs(&testbed, &needs), 0);
    double pfc = 6 * 1048576.0 + (double)needs.bdp_bytes;
    double saved = 1 - (double)needs.bifrost_h_bytes / pfc;
    assert_true(saved > 0.365 && saved < 0.375);
    assert_true(1 - (double)needs.bifrost_buffer_bytes / pfc > 0.36);
    assert_true((double)needs.bifrost_buffer_bytes < 0.52 * (double)needs.pfc_buffer_bytes);
}

/* A frame of 64 bytes in 125,000: 0.0512 %, which is the paper's 0.05 %. */
static void pauses_cost_little(void **state)
{
    (void)state;
    struct lh_flow_needs needs;
    assert_int_equal(lh_flow_needs(&testbed, &needs), 0);
    assert_true(needs.bifrost_pause_share > 0.000511 && needs.bifrost_pause_share < 0.000513);
    assert_int_equal((int)(needs.bifrost_pause_share * 1e4 + 0.5), 5);
    assert_int_equal(lh_flow_needs(&long_link, &needs), 0);
    assert_true(needs.bifrost_pause_share < 0.000129);
}

static void rates_that_do_not_divide_are_rounded_up(void **state)
{
    (void)state;
    struct lh_flow_needs needs;
    struct lh_flow_link link = {33000000001, 1, 1, 1, 1};
    assert_int_equal(lh_flow_needs(&link, &needs), 0);
    assert_int_equal(needs.bdp_bytes, 9); /* 8.25 */
    link = (struct lh_flow_link){100000000000000, 1000000000, 1000000000, 1, 1500};
    assert_int_equal(lh_flow_needs(&link, &needs), 0);
    assert_int_equal(needs.bdp_bytes, 25000000000000);
}

static void values_of_no_link_are_refused(void **state)
{
    (void)state;
    struct lh_flow_needs needs;
    const struct lh_flow_link bad[] = {
        {0, 1, 1, 1, 1},
        {100000000000001, 1, 1, 1, 1},
        {100000000000, 1000000001, 1, 1, 1},
        {100000000000, 1, 0, 1, 1},
        {100000000000, 1, 1000000001, 1, 1},
        {100000000000, 1, 1, 0, 1},
        {100000000000, 1, 1, 1, 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(lh_flow_needs(&bad[i], &needs), -LH_ERANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_link),
        cmocka_unit_test(the_testbed_saves_37_percent),
        cmocka_unit_test(pauses_cost_little),
        cmocka_unit_test(rates_that_do_not_divide_are_rounded_up),
        cmocka_unit_test(values_of_no_link_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
