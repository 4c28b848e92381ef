/*
 * test_path_estimate.c - loss, runs and rate, against values calculated by hand; old and new conditions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/path_estimate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "support/near.h"

#define CHUNK 4096u

static void nothing_is_known(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    assert_true(path_estimate_loss(&estimate) == 0);
    assert_true(path_estimate_run_chunks(&estimate) == 1 && path_estimate_run_upper(&estimate) == 1);
    assert_true(path_estimate_rate_bps(&estimate) == 0);
    assert_near(path_estimate_loss_upper(&estimate), 1e-3, 1e-12); /* (0 + 0.5 + 0.5) of 1000 */
}

/* 100 lost in 50 runs of 10,000: 1 %, runs of 2; upper (50.5 + sqrt(50.25)) x 2 / 10,000. */
static void counts(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    for (int i = 0; i < 50; i++)
        path_estimate_on_chunks(&estimate, 200, 2, 1);
    assert_near(path_estimate_loss(&estimate), 0.01, 1e-12);
    assert_near(path_estimate_run_chunks(&estimate), 2, 1e-12);
    assert_near(path_estimate_run_upper(&estimate), 2 + sqrt(2 / 50.0), 1e-12);
    assert_near(path_estimate_loss_upper(&estimate), (50.5 + sqrt(50.25)) * 2 / 10000, 1e-12);
    assert_true(estimate.chunks_seen == 10000 && estimate.chunks_lost == 100);
}

/* Runs of 2.5 chunks: bursts of 2.5 packets where a chunk is one, of 1 + 1.5 x 8 where it has eight. */
static void bursts_of_packets(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    assert_near(path_estimate_burst_packets(&estimate, 8), 1, 1e-12);
    path_estimate_on_chunks(&estimate, 1000, 5, 2);
    assert_near(path_estimate_burst_packets(&estimate, 1), 2.5, 1e-12);
    assert_near(path_estimate_burst_packets(&estimate, 8), 13, 1e-12);
}

/* Without a loss the upper end falls as more is seen, as far as the memory goes. */
static void none_lost_means_more_and_more(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    double before = 1;
    for (uint32_t seen = 0; seen < PATH_ESTIMATE_MEMORY; seen += PATH_ESTIMATE_RECENT) {
        path_estimate_on_chunks(&estimate, PATH_ESTIMATE_RECENT, 0, 0);
        double upper = path_estimate_loss_upper(&estimate);
        if (seen + PATH_ESTIMATE_RECENT < PATH_ESTIMATE_MEMORY)
            assert_true(upper < before && upper > 0);
        before = upper;
    }
    assert_true(before <= 2.0 / PATH_ESTIMATE_MEMORY);
}

static void run(struct path_estimate *estimate, struct lh_prng *prng, double loss, uint32_t chunks)
{
    for (uint32_t i = 0; i < chunks; i++) {
        uint32_t lost = lh_prng_double(prng) < loss;
        path_estimate_on_chunks(estimate, 1, lost, lost);
    }
}

/* Halving forgets, and changes no share and no length of runs. */
static void halving_changes_nothing_else(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    for (uint32_t seen = 0; seen < 4 * PATH_ESTIMATE_MEMORY; seen += PATH_ESTIMATE_RECENT)
        path_estimate_on_chunks(&estimate, PATH_ESTIMATE_RECENT, 30, 10);
    assert_near(path_estimate_loss(&estimate), 30.0 / PATH_ESTIMATE_RECENT, 1e-9);
    assert_near(path_estimate_run_chunks(&estimate), 3, 1e-9);
    assert_true(estimate.known.seen <= PATH_ESTIMATE_MEMORY);
}

/* The model takes shares below 1, and no code helps against more than half. */
static void not_more_than_half_is_planned_for(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    path_estimate_on_chunks(&estimate, 2000, 1999, 3);
    assert_true(path_estimate_loss_upper(&estimate) == 0.5);
}

/* What was long true is given up within two rounds when it is not true any more, both ways. */
static void a_path_that_changes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct path_estimate estimate;
        struct lh_prng prng;
        lh_prng_seed(&prng, seed);
        path_estimate_init(&estimate);
        run(&estimate, &prng, 1e-5, 200000);
        assert_true(path_estimate_loss(&estimate) < 1e-4);
        run(&estimate, &prng, 0.02, 2 * PATH_ESTIMATE_RECENT);
        assert_true(path_estimate_loss(&estimate) > 0.01);
        run(&estimate, &prng, 0.02, 100000);
        assert_near(path_estimate_loss(&estimate), 0.02, 0.15);
        run(&estimate, &prng, 0, 2 * PATH_ESTIMATE_RECENT);
        assert_true(path_estimate_loss(&estimate) < 0.011);
        run(&estimate, &prng, 0, 4 * PATH_ESTIMATE_RECENT);
        assert_true(path_estimate_loss(&estimate) < 0.002);
    }
}

/* And what did not change is kept: a steady path is not given up by chance. */
static void a_path_that_does_not(void **state)
{
    (void)state;
    static const double losses[] = {1e-4, 1e-3, 1e-2, 0.1};
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        struct path_estimate estimate;
        struct lh_prng prng;
        lh_prng_seed(&prng, 7);
        path_estimate_init(&estimate);
        run(&estimate, &prng, losses[i], PATH_ESTIMATE_MEMORY - 1);
        double expected = losses[i] * PATH_ESTIMATE_MEMORY;
        assert_near(path_estimate_loss(&estimate), losses[i], 4 / sqrt(expected));
        assert_true(path_estimate_loss_upper(&estimate) > losses[i] * (1 - 3 / sqrt(expected)));
    }
}

/* 8 chunks a ms are 262 Mbit/s. The first look counts nothing, and no pause does. */
static void rate(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    lh_time now = LH_NS_PER_S, pause = 5 * LH_NS_PER_MS;
    for (int burst = 0; burst < 10; burst++) {
        path_estimate_on_arrivals(&estimate, now, 100, 100 * CHUNK, pause); /* whenever these came */
        for (int i = 0; i < 20; i++) {
            now += LH_NS_PER_MS;
            path_estimate_on_arrivals(&estimate, now, 8, 8 * CHUNK, pause);
        }
        now += pause + 1 + (lh_time)burst * LH_NS_PER_S;
    }
    assert_near(path_estimate_rate_bps(&estimate), 8 * CHUNK * 8 * 1e3, 1e-9);
}

/* Four busy seconds at 1 Gbit/s are nearly forgotten after ten at 100 Mbit/s; the way back is as short. */
static void rate_changes(void **state)
{
    (void)state;
    static const struct {
        uint32_t chunks; /* a ms */
        uint32_t ms;
    } phases[] = {{32, 4000}, {4, 10000}, {32, 10000}};
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    lh_time now = LH_NS_PER_S;
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        uint32_t chunks = phases[i].chunks;
        for (uint32_t ms = 0; ms < phases[i].ms; ms++, now += LH_NS_PER_MS)
            path_estimate_on_arrivals(&estimate, now, chunks, (uint64_t)chunks * CHUNK, 5 * LH_NS_PER_MS);
        assert_near(path_estimate_rate_bps(&estimate), chunks * CHUNK * 8 * 1e3, 0.1);
    }
}

/* A stall shorter than a pause is part of the time, and what waited comes at once: the mean is right. */
static void a_stall_does_not_make_it_faster(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    lh_time now = LH_NS_PER_S, pause = 5 * LH_NS_PER_MS;
    path_estimate_on_arrivals(&estimate, now, 1, CHUNK, pause);
    for (int i = 0; i < 100; i++) {
        bool stalled = i % 10 >= 7; /* three of ten ms nothing is looked at */
        now += LH_NS_PER_MS;
        if (!stalled)
            path_estimate_on_arrivals(&estimate, now, i % 10 == 0 ? 32 : 8, (i % 10 == 0 ? 32 : 8) * CHUNK,
                                      pause);
    }
    assert_near(path_estimate_rate_bps(&estimate), 8 * CHUNK * 8 * 1e3, 0.1);
}

/* A few chunks that come after all others are repairs, and tell nothing. */
static void repairs_tell_no_rate(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    lh_time pause = 5 * LH_NS_PER_MS;
    for (lh_time i = 1; i <= 50; i++) {
        lh_time now = i * 100 * LH_NS_PER_MS;
        path_estimate_on_arrivals(&estimate, now, 1, CHUNK, pause);
        path_estimate_on_arrivals(&estimate, now + LH_NS_PER_MS, PATH_ESTIMATE_PERIOD - 1,
                                  (PATH_ESTIMATE_PERIOD - 1) * CHUNK, pause);
    }
    assert_true(path_estimate_rate_bps(&estimate) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known),
        cmocka_unit_test(counts),
        cmocka_unit_test(bursts_of_packets),
        cmocka_unit_test(none_lost_means_more_and_more),
        cmocka_unit_test(halving_changes_nothing_else),
        cmocka_unit_test(not_more_than_half_is_planned_for),
        cmocka_unit_test(a_path_that_changes),
        cmocka_unit_test(a_path_that_does_not),
        cmocka_unit_test(rate),
        cmocka_unit_test(rate_changes),
        cmocka_unit_test(a_stall_does_not_make_it_faster),
        cmocka_unit_test(repairs_tell_no_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
