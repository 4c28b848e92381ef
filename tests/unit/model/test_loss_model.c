/*
 * test_loss_model.c - chances of losses, to their last digit and in bursts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/link_spec.h"
#include "base/prng.h"
#include "model/loss_model.h"
#include "support/near.h"

/* ---- test binomial --------------------------------------------------------------------------------- */

static void test_known_values(void **state)
{
    (void)state;
    double chance[MODEL_COUNT_MAX + 1];
    model_binomial(4, 0.5, chance);
    assert_near(chance[0], 1.0 / 16, 1e-14);
    assert_near(chance[1], 4.0 / 16, 1e-14);
    assert_near(chance[2], 6.0 / 16, 1e-14);
    model_binomial(40, 1e-12, chance);
    assert_near(chance[0], 1 - 40e-12, 1e-14);
    assert_near(chance[9], 273438880.0 * 1e-108, 1e-9);
    model_binomial(7, 0, chance);
    assert_near(chance[0], 1, 0);
    model_binomial(7, 1, chance);
    assert_near(chance[7], 1, 0);
}

/* Also where the least likely count is too small for a double. */
static void test_sums_to_one(void **state)
{
    (void)state;
    double chance[MODEL_COUNT_MAX + 1];
    const double shares[] = {1e-12, 1e-3, 0.3, 0.5, 0.9, 0.999999};
    for (unsigned n = 1; n <= MODEL_COUNT_MAX; n += 127)
        for (unsigned s = 0; s < sizeof shares / sizeof *shares; s++) {
            model_binomial(n, shares[s], chance);
            double sum = 0;
            double mean = 0;
            for (unsigned x = 0; x <= n; x++) {
                sum += chance[x];
                mean += x * chance[x];
                if (chance[x] > 1e-280)
                    assert_near(chance[x], exp(model_binomial_log(n, x, shares[s])), 1e-9);
            }
            assert_near(sum, 1, 1e-11);
            assert_near(mean, n * shares[s], 1e-11);
        }
}

/* Each of the 2^packets histories of a link, one by one. */
static void all_histories(const struct model_loss *loss, unsigned n, unsigned between, double *chance)
{
    const unsigned size = (unsigned)loss->chunk_packets;
    const unsigned packets = n * size + (n - 1) * between;
    for (unsigned x = 0; x <= n; x++)
        chance[x] = 0;
    for (uint32_t history = 0; history < (uint32_t)1 << packets; history++) {
        double p = history & 1 ? loss->packet : 1 - loss->packet;
        for (unsigned i = 1; i < packets; i++) {
            double lost = history >> (i - 1) & 1 ? 1 - 1 / loss->burst : loss->enter;
            p *= history >> i & 1 ? lost : 1 - lost;
        }
        unsigned x = 0;
        for (unsigned c = 0; c < n; c++)
            x += (history >> c * (size + between) & (((uint32_t)1 << size) - 1)) != 0;
        chance[x] += p;
    }
}

static void test_bursts_by_all_histories(void **state)
{
    (void)state;
    for (unsigned between = 0; between <= 3; between += 3) {
        struct model_loss loss = model_loss_of_packets(0.1, 3, 2);
        double chance[MODEL_COUNT_MAX + 1];
        double wanted[MODEL_COUNT_MAX + 1];
        model_lost_chunks(&loss, 4, between, chance);
        all_histories(&loss, 4, between, wanted);
        for (unsigned x = 0; x <= 4; x++)
            assert_near(chance[x], wanted[x], 1e-12);
    }
}

/* Far apart, bursts are as independent loss of chunks. */
static void test_bursts_far_apart(void **state)
{
    (void)state;
    struct model_loss loss = model_loss_of_packets(0.01, 20, 16);
    double apart[MODEL_COUNT_MAX + 1];
    double independent[MODEL_COUNT_MAX + 1];
    model_lost_chunks(&loss, 40, 1e6, apart);
    model_binomial(40, loss.chunk, independent);
    for (unsigned x = 0; x <= 12; x++)
        assert_near(apart[x], independent[x], 1e-9);
}

static void test_quantiles(void **state)
{
    (void)state;
    assert_near(model_binomial_quantile(1e-3, 1e9, 0.999), 0, 0);
    assert_near(model_binomial_quantile(0, 1e9, 0.999), 0, 0);
    assert_near(model_binomial_quantile(7, 7, 0.5), 7, 0);
    /* Poisson with mean 1: 98.1 % see at most 3, 99.634 at most 4, 99.941 at most 5. */
    assert_near(model_binomial_quantile(1, 1e9, 0.99), 4, 0);
    assert_near(model_binomial_quantile(1, 1e9, 0.999), 5, 0);
    /* Normal: 3.0902 standard deviations above the mean. */
    assert_near(model_binomial_quantile(1e8, 1e9, 0.999), 1e8 + 3.0902 * sqrt(9e7), 1e-7);
}

static int run_binomial(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_sums_to_one),
        cmocka_unit_test(test_bursts_by_all_histories),
        cmocka_unit_test(test_bursts_far_apart),
        cmocka_unit_test(test_quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test confidence ------------------------------------------------------------------------------- */

/* Wilson's interval against values from elsewhere, and how often it holds the truth. */

static void confidence_assert_near(double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-6))
        fail_msg("%.9g, not %.9g", got, wanted);
}

/* From the formula in another language; the first is an example that many textbooks have. */
static void test_reference_values(void **state)
{
    (void)state;
    const struct {
        double hits, samples, low, high;
    } known[] = {
        {1, 10, 0.017876213, 0.404150027}, {5, 10, 0.236593090, 0.763406910},    {0, 10, 0, 0.277532799},
        {10, 10, 0.722467201, 1},          {10, 1000, 0.005440754, 0.018309469},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct model_confidence got = model_confidence_of(known[i].hits, known[i].samples);
        confidence_assert_near(got.low, known[i].low);
        confidence_assert_near(got.high, known[i].high);
    }
}

static void test_nothing_is_known_without_draws(void **state)
{
    (void)state;
    struct model_confidence got = model_confidence_of(0, 0);
    assert_true(got.low == 0 && got.high == 1);
}

/* 2000 trials of 500 draws: the truth lies inside 95 % of them. */
static void test_holds_the_truth_as_often_as_it_says(void **state)
{
    (void)state;
    const double shares[] = {0.01, 0.1, 0.5};
    struct lh_prng prng;
    lh_prng_seed(&prng, 7);
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        unsigned held = 0;
        for (unsigned trial = 0; trial < 2000; trial++) {
            double hits = 0;
            for (unsigned i = 0; i < 500; i++)
                hits += lh_prng_double(&prng) < shares[s];
            struct model_confidence got = model_confidence_of(hits, 500);
            held += got.low <= shares[s] && shares[s] <= got.high;
        }
        assert_in_range(held, 1860, 1960);
    }
}

static int run_confidence(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_values),
        cmocka_unit_test(test_nothing_is_known_without_draws),
        cmocka_unit_test(test_holds_the_truth_as_often_as_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test loss ------------------------------------------------------------------------------------- */

/* What a loss of packets means for chunks, and back. */

static void test_independent(void **state)
{
    (void)state;
    struct model_loss loss = model_loss_of_packets(1e-5, 0, 16);
    assert_near(loss.chunk, 1.5998800055995e-4, 1e-12); /* 1 - (1 - 1e-5)^16 */
    assert_near(loss.leaves, 1 - loss.chunk, 0);
    assert_near(model_loss_of_packets(1e-12, 0, 16).chunk, 1.6e-11, 1e-10);
    assert_near(model_loss_of_packets(0, 0, 64).chunk, 0, 0);
    assert_false(loss.bursty);
}

/* Bursts as long as chance makes them are no bursts. */
static void test_bursts_of_chance(void **state)
{
    (void)state;
    const double shares[] = {1e-9, 1e-3, 0.3};
    for (unsigned i = 0; i < 3; i++) {
        struct model_loss chance = model_loss_of_packets(shares[i], 0, 16);
        struct model_loss loss = model_loss_of_packets(shares[i], 1 / (1 - shares[i]), 16);
        assert_true(loss.bursty);
        assert_near(loss.enter, chance.enter, 1e-12);
        assert_near(loss.chunk, chance.chunk, 1e-12);
        assert_near(loss.leaves, chance.leaves, 1e-12);
        assert_near(model_loss_after(&loss, true, 1), shares[i], 1e-6);
    }
}

/* The longer the bursts, the fewer chunks share the same lost packets. */
static void test_bursts_hit_fewer_chunks(void **state)
{
    (void)state;
    struct model_loss loss = model_loss_of_packets(1e-3, 32, 16);
    /* 1e-3 / 32 bursts a packet; each takes what it overlaps: 1 + (32 + 15 - 1) / 16 chunks at 16 packets. */
    assert_near(loss.chunk, 1e-3 + (1 - 1e-3) * -expm1(15 * log1p(-1e-3 / (32 * 0.999))), 1e-12);
    assert_true(loss.chunk < 0.1 * model_loss_of_packets(1e-3, 0, 16).chunk);
    /* In the long run as many rows of lost chunks end as begin. */
    double begins = -expm1(16 * log1p(-loss.enter)) * (1 - loss.chunk);
    assert_near(loss.leaves * loss.chunk, begins, 1e-9);
    assert_near(model_loss_after(&loss, true, 1), 1 - 1.0 / 32, 1e-12);
    assert_near(model_loss_after(&loss, false, 1), loss.enter, 1e-9);
    assert_near(model_loss_after(&loss, true, 1e6), 1e-3, 1e-9);
}

static void test_told_by_chunk(void **state)
{
    (void)state;
    const double shares[] = {0, 1e-12, 1e-4, 0.5};
    const double bursts[] = {0, 8};
    for (unsigned b = 0; b < 2; b++)
        for (unsigned i = 0; i < 4; i++) {
            struct model_loss loss = model_loss_of_chunks(shares[i], bursts[b], 16);
            assert_near(loss.chunk, shares[i], 1e-9);
            assert_near(model_loss_of_packets(loss.packet, bursts[b], 16).chunk, shares[i], 1e-9);
        }
}

static int run_loss(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_independent),
        cmocka_unit_test(test_bursts_of_chance),
        cmocka_unit_test(test_bursts_hit_fewer_chunks),
        cmocka_unit_test(test_told_by_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test loss runs -------------------------------------------------------------------------------- */

/* Counts by hand, and what the emulated link was told to lose is found again. */

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

static int run_loss_runs(void)
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

/* ---- test loss sampler ----------------------------------------------------------------------------- */

/* Draws of losses have the chances that they are to have. */

/* A mean of so many draws lies within five standard errors. Seeds are fixed: no test changes its mind. */
static void near_mean(double sum, double count, double mean, double variance)
{
    double error = sqrt(variance / count);
    if (!(fabs(sum / count - mean) <= 5 * error))
        fail_msg("a mean of %g, not %g within 5 of %g", sum / count, mean, error);
}

static void test_gaps(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    const double losses[] = {1e-9, 0.01, 0.5, 0.99};
    for (unsigned l = 0; l < 4; l++) {
        double p = losses[l];
        double sum = 0;
        for (int i = 0; i < 20000; i++) {
            double gap = model_sample_gap(&prng, log1p(-p));
            assert_true(gap >= 0 && gap == floor(gap));
            sum += gap;
        }
        near_mean(sum, 20000, (1 - p) / p, (1 - p) / (p * p));
    }
    assert_true(isinf(model_sample_gap(&prng, 0)));
    assert_near(model_sample_gap(&prng, -INFINITY), 0, 0);
}

/* Few and many, likely and unlikely: both ways to draw. */
static void test_binomial(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 2);
    const struct {
        double n;
        double p;
    } cases[] = {{1, 0.3},   {40, 0.01},   {1e9, 1e-9}, {40, 0.6},
                 {100, 0.5}, {1000, 0.03}, {1e7, 0.2},  {50, 0.97}};
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        const double n = cases[c].n;
        const double p = cases[c].p;
        const double variance = n * p * (1 - p);
        double sum = 0;
        double squares = 0;
        for (int i = 0; i < 20000; i++) {
            double sampled = model_sample_binomial(&prng, n, p);
            assert_true(sampled >= 0 && sampled <= n && sampled == floor(sampled));
            sum += sampled;
            squares += (sampled - n * p) * (sampled - n * p);
        }
        near_mean(sum, 20000, n * p, variance);
        near_mean(squares, 20000, variance, 3 * variance * variance + variance);
    }
    assert_near(model_sample_binomial(&prng, 1e9, 0), 0, 0);
    assert_near(model_sample_binomial(&prng, 1e9, 1), 1e9, 0);
    assert_near(model_sample_binomial(&prng, 0, 0.5), 0, 0);
}

/* Each count of a binomial that is drawn by rejection is as likely as it is to be. */
static void test_binomial_counts(void **state)
{
    (void)state;
    struct lh_prng prng;
    static unsigned seen[101];
    lh_prng_seed(&prng, 3);
    for (int i = 0; i < 100000; i++)
        seen[(unsigned)model_sample_binomial(&prng, 100, 0.3)]++;
    double chance = pow(0.7, 100);
    for (unsigned x = 0; x <= 100; x++) {
        double error = sqrt(chance * (1 - chance) / 1e5);
        assert_true(fabs(seen[x] / 1e5 - chance) <= 5 * error + 1e-5);
        chance *= (100.0 - x) / (x + 1) * (0.3 / 0.7);
    }
}

/* Rows of lost packets: as many, and as long, as the link says, also where it is looked at in pieces. */
static void look(const struct model_loss *loss, double piece, double between, double *lost, double *rows,
                 double *sent)
{
    struct lh_prng prng;
    struct model_bursts bursts;
    struct model_burst row;
    double reported = -1;
    lh_prng_seed(&prng, 4);
    model_bursts_start(&bursts, loss);
    *lost = *rows = *sent = 0;
    for (double at = 0; at < 3e7; at += piece + between) {
        model_bursts_skip(&bursts, &prng, at);
        *sent += piece;
        while (model_bursts_next(&bursts, &prng, at + piece, &row)) {
            assert_true(row.first >= at && row.first > reported + (row.first > at) &&
                        row.last >= row.first);
            assert_true(row.last < at + piece);
            reported = row.last;
            *lost += row.last - row.first + 1;
            *rows += 1;
        }
    }
}

static void test_bursts(void **state)
{
    (void)state;
    struct model_loss loss = model_loss_of_packets(0.01, 12, 16);
    double lost;
    double rows;
    double sent;
    look(&loss, 3.1e7, 0, &lost, &rows, &sent);
    assert_near(lost / sent, 0.01, 0.03);
    assert_near(lost / rows, 12, 0.03);
    look(&loss, 7, 3, &lost, &rows, &sent); /* in pieces, with breaks */
    assert_near(lost / sent, 0.01, 0.03);
    look(&loss, 7, 0, &lost, &rows, &sent); /* a row that goes on is told again: 1 / 7 of its packets */
    assert_near(lost / sent, 0.01, 0.03);
    assert_near(lost / rows, 12 / (1 + 11.0 / 7), 0.05);
}

static int run_loss_sampler(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_binomial),
        cmocka_unit_test(test_binomial_counts),
        cmocka_unit_test(test_bursts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_binomial() + run_confidence() + run_loss() + run_loss_runs() + run_loss_sampler();
}
