/*
 * test_monte_carlo.c - many samples: the same by any number of threads, and as the formulas say.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/monte_carlo.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"
#include "support/sanitized.h"

#include <longhaul/model.h>

static struct lh_model_path path_of(uint64_t bytes, double loss)
{
    return (struct lh_model_path){.message_bytes = bytes,
                                  .chunk_bytes = 4096,
                                  .mtu_bytes = 4096,
                                  .bandwidth_bps = 400e9,
                                  .rtt_s = 25e-3,
                                  .loss = loss};
}

static struct lh_model_scheme scheme_of(const char *text)
{
    struct lh_model_scheme scheme;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    return scheme;
}

#define SAMPLES 20000

static double samples[SAMPLES];
static double others[SAMPLES];

/* Figure 9: sizes from 128 KiB to 8 GiB, loss from 10^-6 to 10^-1, packets as chunks. The mean of 20,000
 * messages is within 1 % of the formula. */
static void test_figure_9(void **state)
{
    (void)state;
    const uint64_t kib[] = {128, 1 << 10, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20};
    const double losses[] = {1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1};
    const char *texts[] = {"sr-rto", "sr-nack", "ec:mds,k=32,m=8,fallback=sr"};
    for (unsigned t = 0; t < 3; t++)
        for (unsigned k = 0; k < 8; k++)
            for (unsigned l = 0; l < 8; l++) {
                struct lh_model_path path = path_of(kib[k] << 10, losses[l]);
                struct lh_model_scheme scheme = scheme_of(texts[t]);
                struct lh_model_times times;
                struct lh_model_summary summary;
                assert_int_equal(lh_model_predict(&path, &scheme, &times), 0);
                assert_int_equal(lh_model_sample(&path, &scheme, 14, 2, samples, SAMPLES), 0);
                assert_int_equal(lh_model_summarize(samples, SAMPLES, &summary), 0);
                assert_near(summary.mean_s, times.mean_s, 0.01);
                /* A percentile may lie on a step: then one of its neighbours does. */
                double low;
                double high;
                assert_int_equal(lh_model_quantile(&path, &scheme, 0.985, &low), 0);
                assert_int_equal(lh_model_quantile(&path, &scheme, 0.995, &high), 0);
                assert_true(summary.p99_s >= low * (1 - 1e-3) && summary.p99_s <= high * (1 + 1e-3));
            }
}

static void test_same_by_any_threads(void **state)
{
    (void)state;
    const char *texts[] = {"sr-nack", "ec:xor,k=8,m=4", "gbn"};
    for (unsigned t = 0; t < 3; t++)
        for (int burst = 0; burst <= 10; burst += 10) {
            struct lh_model_path path = path_of(1 << 20, 0.01);
            path.burst_packets = burst;
            struct lh_model_scheme scheme = scheme_of(texts[t]);
            assert_int_equal(lh_model_sample(&path, &scheme, 3, 1, samples, 1000), 0);
            for (uint32_t threads = 2; threads <= 7; threads += 5) {
                assert_int_equal(lh_model_sample(&path, &scheme, 3, threads, others, 1000), 0);
                assert_memory_equal(samples, others, 1000 * sizeof *samples);
            }
            /* Fewer samples are the first of more; another seed gives others. */
            assert_int_equal(lh_model_sample(&path, &scheme, 3, 2, others, 129), 0);
            assert_memory_equal(samples, others, 129 * sizeof *samples);
            assert_int_equal(lh_model_sample(&path, &scheme, 4, 2, others, 1000), 0);
            assert_memory_not_equal(samples, others, 1000 * sizeof *samples);
        }
}

static void test_refused(void **state)
{
    (void)state;
    struct lh_model_path path = path_of(1 << 20, 0.01);
    struct lh_model_scheme scheme = scheme_of("sr-nack");
    assert_int_equal(lh_model_sample(&path, &scheme, 1, 0, samples, 10), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "threads"));
    assert_int_equal(lh_model_sample(&path, &scheme, 1, 257, samples, 10), -LH_EINVAL);
    assert_int_equal(lh_model_sample(&path, &scheme, 1, 1, samples, 0), -LH_EINVAL);
    assert_int_equal(lh_model_sample(&path, &scheme, 1, 1, NULL, 10), -LH_EINVAL);
    path.loss = -1;
    assert_int_equal(lh_model_sample(&path, &scheme, 1, 1, samples, 10), -LH_ERANGE);
}

static double only_value(const void *context, struct lh_prng *prng, void *scratch)
{
    (void)prng;
    double *used = scratch;
    return *(const double *)context + (*used)++;
}

/* Scratch is a thread's own, and zero at first. */
static void test_scratch(void **state)
{
    (void)state;
    const double base = 7;
    const struct model_job job = {only_value, &base, sizeof(double)};
    assert_int_equal(model_monte_carlo(&job, 1, 1, samples, 300), 0);
    for (unsigned i = 0; i < 300; i++)
        assert_near(samples[i], 7.0 + i, 0);
    const struct model_job greedy = {only_value, &base, SIZE_MAX / 2};
    if (!SANITIZED) /* a sanitizer ends the process instead */
        assert_int_equal(model_monte_carlo(&greedy, 1, 1, samples, 300), -LH_ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figure_9),
        cmocka_unit_test(test_same_by_any_threads),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
