/*
 * test_loss_runs.c - counts by hand, and what the emulated link was told to lose is found again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/loss_runs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/link_fate.h"

#include <cmocka.h>

/* 'x' is lost, '.' arrives. */
static struct model_loss_runs runs_of(const char *text)
{
    struct model_loss_runs runs = {0};
    struct model_loss_before before = {0};
    for (; *text; text++)
        model_loss_runs_add(&runs, &before, *text == 'x');
    assert_true(model_loss_runs_possible(&runs));
    return runs;
}

static void test_counts(void **state)
{
    (void)state;
    struct model_loss_runs runs = runs_of("x..xx.x");
    assert_int_equal(runs.packets, 7);
    assert_int_equal(runs.lost, 4);
    assert_int_equal(runs.after_arrived, 3);
    assert_int_equal(runs.lost_after_arrived, 2);
    assert_int_equal(runs.after_lost, 3);
    assert_int_equal(runs.arrived_after_lost, 2);
    struct model_loss_fit fit = model_loss_runs_fit(&runs);
    assert_true(fabs(fit.loss - 4.0 / 7) < 1e-12 && fabs(fit.burst_packets - 1.5) < 1e-12);
    assert_true(fit.burst_low <= 1.5 && fit.burst_high >= 1.5 && !fit.bursty);
}

static void test_ends(void **state)
{
    (void)state;
    struct model_loss_runs runs = {0};
    struct model_loss_fit fit = model_loss_runs_fit(&runs);
    assert_true(fit.loss == 0 && fit.loss_low == 0 && fit.loss_high == 1);
    assert_true(fit.burst_packets == 1 && isinf(fit.burst_high) && !fit.bursty);
    runs = runs_of("....");
    fit = model_loss_runs_fit(&runs);
    assert_true(fit.loss == 0 && fit.loss_high < 1 && fit.burst_packets == 1);
    runs = runs_of("xxxx");
    fit = model_loss_runs_fit(&runs);
    assert_true(fit.loss == 1 && fit.loss_high == 1 && fit.burst_packets == 3 && isinf(fit.burst_high));
    runs = runs_of("x");
    fit = model_loss_runs_fit(&runs);
    assert_true(fit.loss == 1 && fit.burst_packets == 1);
}

static void test_impossible_counts(void **state)
{
    (void)state;
    assert_false(model_loss_runs_possible(&(struct model_loss_runs){.lost = 1}));
    assert_false(model_loss_runs_possible(&(struct model_loss_runs){.packets = 9, .after_lost = 1}));
    assert_false(model_loss_runs_possible(
        &(struct model_loss_runs){.packets = 9, .lost = 2, .after_lost = 1, .arrived_after_lost = 2}));
    assert_false(model_loss_runs_possible(&(struct model_loss_runs){.packets = 2, .after_arrived = 3}));
    assert_false(model_loss_runs_possible(
        &(struct model_loss_runs){.packets = 9, .after_arrived = 5, .lost_after_arrived = 1}));
}

/* Joined stretches have no neighbours across the seam. */
static void test_join(void **state)
{
    (void)state;
    struct model_loss_runs sum = runs_of("..x");
    struct model_loss_runs more = runs_of("x..");
    model_loss_runs_join(&sum, &more);
    assert_int_equal(sum.packets, 6);
    assert_int_equal(sum.lost, 2);
    assert_int_equal(sum.after_lost, 1);
    assert_int_equal(sum.after_arrived, 3);
    assert_true(model_loss_runs_possible(&sum));
}

static struct model_loss_runs runs_of_link(double loss, double burst, uint64_t seed, unsigned packets)
{
    struct lh_link_spec spec = {.loss = loss, .burst_packets = burst, .seed = seed};
    struct lh_link_state link;
    struct model_loss_runs runs = {0};
    struct model_loss_before before = {0};
    lh_link_state_init(&link, &spec, 0);
    for (unsigned i = 0; i < packets; i++)
        model_loss_runs_add(&runs, &before, lh_link_decide(&link, 0, 1000).dropped);
    return runs;
}

/* Of the intervals one in twenty misses: the seed is one where none does. */
static void test_finds_what_the_link_was_told(void **state)
{
    (void)state;
    const struct {
        double loss, burst;
    } links[] = {{1e-3, 0}, {1e-2, 0}, {0.1, 0}, {1e-2, 4}, {1e-2, 20}, {0.3, 3}};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        struct model_loss_runs runs = runs_of_link(links[i].loss, links[i].burst, 5, 200000);
        struct model_loss_fit fit = model_loss_runs_fit(&runs);
        bool bursty = links[i].burst > 1;
        double burst = bursty ? links[i].burst : 1 / (1 - links[i].loss);
        assert_true(fit.loss_low <= links[i].loss && links[i].loss <= fit.loss_high);
        assert_true(fit.burst_low <= burst && burst <= fit.burst_high);
        assert_true(fabs(fit.burst_packets / burst - 1) < 0.2);
        assert_int_equal(fit.bursty, bursty);
    }
}

/* 400 short trials over a bursty link: an interval that took packets for independent would hold the true
 * loss in about half of them. */
static void test_interval_knows_bursts(void **state)
{
    (void)state;
    unsigned held = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct model_loss_runs runs = runs_of_link(0.02, 10, seed, 20000);
        struct model_loss_fit fit = model_loss_runs_fit(&runs);
        held += fit.loss_low <= 0.02 && 0.02 <= fit.loss_high;
    }
    assert_in_range(held, 364, 396);
}

/* A part of a bursty measurement that met no burst: its interval still holds what the whole found. */
static void test_part_knows_of_bursts(void **state)
{
    (void)state;
    struct model_loss_runs part = runs_of("...................."), all = runs_of_link(0.02, 10, 1, 20000);
    for (unsigned i = 0; i < 5; i++)
        model_loss_runs_join(&part, &part);
    struct model_loss_fit alone = model_loss_runs_fit(&part), known = model_loss_runs_fit_part(&part, &all);
    assert_true(alone.loss_high < 0.01 && known.loss_high > 0.02 && known.loss_low == 0);
    struct model_loss_fit whole = model_loss_runs_fit(&all), same = model_loss_runs_fit_part(&all, &all);
    assert_true(whole.loss_high == same.loss_high && whole.loss_low == same.loss_low);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_impossible_counts),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_finds_what_the_link_was_told),
        cmocka_unit_test(test_interval_knows_bursts),
        cmocka_unit_test(test_part_knows_of_bursts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
