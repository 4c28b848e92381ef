/*
 * test_collective.c - collectives: rounds, their bound, and what waiting for each other adds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/collective.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"

static const struct lh_model_path path = {.message_bytes = 128 << 20,
                                          .chunk_bytes = 65536,
                                          .mtu_bytes = 4096,
                                          .bandwidth_bps = 400e9,
                                          .rtt_s = 25e-3,
                                          .loss = 1e-4};
static double samples[4000];

static struct lh_model_scheme scheme_of(const char *text)
{
    struct lh_model_scheme scheme;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    return scheme;
}

static void test_rounds(void **state)
{
    (void)state;
    assert_int_equal(model_collective_rounds(LH_MODEL_RING_ALLREDUCE, 4), 6);
    assert_int_equal(model_collective_rounds(LH_MODEL_TREE_ALLREDUCE, 2), 2);
    assert_int_equal(model_collective_rounds(LH_MODEL_TREE_ALLREDUCE, 8), 6);
    assert_int_equal(model_collective_rounds(LH_MODEL_TREE_ALLREDUCE, 9), 8);
    assert_int_equal(model_collective_rounds(LH_MODEL_ALL_TO_ALL, 9), 8);
}

/* Nothing is lost: the rounds one after another, each of its part of the buffer. */
static void test_ideal(void **state)
{
    (void)state;
    struct lh_model_scheme scheme = scheme_of("ideal");
    const double bits = 128.0 * (1 << 20) * 8;
    for (uint32_t n = 2; n <= 9; n++) {
        const double wanted[] = {(2 * n - 2) * (ceil(bits / 8 / n) * 8 / 400e9 + 25e-3),
                                 2 * ceil(log2(n)) * (bits / 400e9 + 25e-3),
                                 (n - 1) * (ceil(bits / 8 / n) * 8 / 400e9 + 25e-3)};
        for (unsigned kind = 0; kind < 3; kind++) {
            double ideal;
            double mean;
            assert_int_equal(lh_model_collective_bound(&path, &scheme, kind, n, &ideal, &mean), 0);
            assert_near(ideal, wanted[kind], 1e-12);
            assert_near(mean, ideal, 0);
            assert_int_equal(lh_model_collective_sample(&path, &scheme, kind, n, 1, 1, samples, 2), 0);
            assert_near(samples[1], ideal, 1e-9);
        }
    }
}

/* Two datacenters in a ring: both wait for the later of two messages, twice. */
static void test_ring_of_two(void **state)
{
    (void)state;
    struct lh_model_scheme scheme = scheme_of("sr-rto");
    struct lh_model_path half = path;
    struct lh_model_summary summary;
    half.message_bytes /= 2;
    /* E of the later of two: the integral of 1 - F^2. */
    double ideal;
    double mean = 0;
    double share = 0;
    for (double at = 0; share < 1 - 1e-9; at += 1e-4) {
        assert_int_equal(lh_model_cdf(&half, &scheme, at + 5e-5, &share), 0);
        mean += (1 - share * share) * 1e-4;
    }
    assert_int_equal(
        lh_model_collective_sample(&path, &scheme, LH_MODEL_RING_ALLREDUCE, 2, 2, 2, samples, 4000), 0);
    assert_int_equal(lh_model_summarize(samples, 4000, &summary), 0);
    assert_true(fabs(summary.mean_s - 2 * mean) < 4 * summary.mean_error_s + 1e-3 * mean);
    double bound;
    assert_int_equal(lh_model_collective_bound(&path, &scheme, LH_MODEL_RING_ALLREDUCE, 2, &ideal, &bound),
                     0);
    assert_true(summary.mean_s > bound);
}

/* Appendix C: no mean is below the bound, and the chain of a tree waits for others, too. */
static void test_bound(void **state)
{
    (void)state;
    const char *texts[] = {"sr-rto", "sr-nack", "ec:mds"};
    for (unsigned t = 0; t < 3; t++)
        for (uint32_t n = 2; n <= 8; n += 3)
            for (unsigned kind = 0; kind < 3; kind++) {
                struct lh_model_scheme scheme = scheme_of(texts[t]);
                struct lh_model_summary summary;
                double ideal;
                double bound;
                assert_int_equal(lh_model_collective_bound(&path, &scheme, kind, n, &ideal, &bound), 0);
                assert_int_equal(lh_model_collective_sample(&path, &scheme, kind, n, 3, 2, samples, 1000),
                                 0);
                assert_int_equal(lh_model_summarize(samples, 1000, &summary), 0);
                assert_true(bound >= ideal &&
                            summary.mean_s >= bound * (1 - 1e-9) - 4 * summary.mean_error_s);
                assert_true(summary.p50_s >= ideal * (1 - 1e-9) && summary.p999_s >= summary.p50_s);
            }
}

static void test_refused(void **state)
{
    (void)state;
    struct lh_model_scheme scheme = scheme_of("sr-rto");
    double ideal = 7;
    double mean = 7;
    assert_int_equal(lh_model_collective_bound(&path, &scheme, LH_MODEL_ALL_TO_ALL, 1, &ideal, &mean),
                     -LH_ERANGE);
    assert_int_equal(lh_model_collective_bound(&path, &scheme, LH_MODEL_ALL_TO_ALL, 4097, &ideal, &mean),
                     -LH_ERANGE);
    assert_int_equal(
        lh_model_collective_bound(&path, &scheme, (enum lh_model_collective)3, 4, &ideal, &mean),
        -LH_EINVAL);
    struct lh_model_path nonsense = path;
    nonsense.message_bytes = (uint64_t)-1;
    assert_int_equal(lh_model_collective_bound(&nonsense, &scheme, LH_MODEL_ALL_TO_ALL, 4, &ideal, &mean),
                     -LH_ERANGE);
    nonsense.message_bytes = 0;
    assert_int_equal(
        lh_model_collective_sample(&nonsense, &scheme, LH_MODEL_RING_ALLREDUCE, 4, 1, 1, samples, 10),
        -LH_ERANGE);
    assert_near(ideal, 7, 0);
    assert_near(mean, 7, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds), cmocka_unit_test(test_ideal),   cmocka_unit_test(test_ring_of_two),
        cmocka_unit_test(test_bound),  cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
