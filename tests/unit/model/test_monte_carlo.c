/*
 * test_monte_carlo.c - by hand, and sorted rows of every shape.
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

#include <longhaul/model.h>

#include "base/prng.h"
#include "model/monte_carlo.h"
#include "support/near.h"
#include "support/sanitized.h"

/* ---- test delay summary ---------------------------------------------------------------------------- */

static void test_few(void **state)
{
    (void)state;
    struct model_delays spread = model_delays_of(NULL, 0);
    assert_true(spread.samples == 0 && spread.maximum_ns == 0);
    spread = model_delays_of((lh_time[]){7}, 1);
    assert_true(spread.samples == 1 && spread.minimum_ns == 7 && spread.p50_ns == 7 && spread.p99_ns == 7);
    assert_true(spread.maximum_ns == 7 && spread.mean_ns == 7 && spread.jitter_ns == 0);
}

/* Distances 2, 6, 3: jitter 11 / 3. The median of four is the second. */
static void test_by_hand(void **state)
{
    (void)state;
    struct model_delays spread = model_delays_of((lh_time[]){4, 2, 8, 5}, 4);
    assert_true(spread.minimum_ns == 2 && spread.p50_ns == 4 && spread.maximum_ns == 8);
    assert_true(spread.p99_ns == 8 && spread.mean_ns == 4 && spread.jitter_ns == 3);
}

static void test_ranks_of_any_order(void **state)
{
    (void)state;
    lh_time samples[200];
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    for (size_t i = 0; i < 200; i++)
        samples[i] = i + 1;
    for (size_t i = 200; i-- > 1;) {
        size_t other = (size_t)lh_prng_below(&prng, i + 1);
        lh_time moved = samples[i];
        samples[i] = samples[other];
        samples[other] = moved;
    }
    struct model_delays spread = model_delays_of(samples, 200);
    assert_true(spread.minimum_ns == 1 && spread.p50_ns == 100 && spread.p99_ns == 198);
    assert_true(spread.maximum_ns == 200 && spread.mean_ns == 100);
    for (size_t i = 0; i < 200; i++)
        assert_true(samples[i] == i + 1);
}

static int run_delay_summary(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_ranks_of_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test monte carlo ------------------------------------------------------------------------------ */

/* Many samples: the same by any number of threads, and as the formulas say. */

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

static double monte_carlo_samples[SAMPLES];
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
                assert_int_equal(lh_model_sample(&path, &scheme, 14, 2, monte_carlo_samples, SAMPLES), 0);
                assert_int_equal(lh_model_summarize(monte_carlo_samples, SAMPLES, &summary), 0);
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
            assert_int_equal(lh_model_sample(&path, &scheme, 3, 1, monte_carlo_samples, 1000), 0);
            for (uint32_t threads = 2; threads <= 7; threads += 5) {
                assert_int_equal(lh_model_sample(&path, &scheme, 3, threads, others, 1000), 0);
                assert_memory_equal(monte_carlo_samples, others, 1000 * sizeof *monte_carlo_samples);
            }
            /* Fewer samples are the first of more; another seed gives others. */
            assert_int_equal(lh_model_sample(&path, &scheme, 3, 2, others, 129), 0);
            assert_memory_equal(monte_carlo_samples, others, 129 * sizeof *monte_carlo_samples);
            assert_int_equal(lh_model_sample(&path, &scheme, 4, 2, others, 1000), 0);
            assert_memory_not_equal(monte_carlo_samples, others, 1000 * sizeof *monte_carlo_samples);
        }
}

static void test_refused(void **state)
{
    (void)state;
    struct lh_model_path path = path_of(1 << 20, 0.01);
    struct lh_model_scheme scheme = scheme_of("sr-nack");
    assert_int_equal(lh_model_sample(&path, &scheme, 1, 0, monte_carlo_samples, 10), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "threads"));
    assert_int_equal(lh_model_sample(&path, &scheme, 1, 257, monte_carlo_samples, 10), -LH_EINVAL);
    assert_int_equal(lh_model_sample(&path, &scheme, 1, 1, monte_carlo_samples, 0), -LH_EINVAL);
    assert_int_equal(lh_model_sample(&path, &scheme, 1, 1, NULL, 10), -LH_EINVAL);
    path.loss = -1;
    assert_int_equal(lh_model_sample(&path, &scheme, 1, 1, monte_carlo_samples, 10), -LH_ERANGE);
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
    assert_int_equal(model_monte_carlo(&job, 1, 1, monte_carlo_samples, 300), 0);
    for (unsigned i = 0; i < 300; i++)
        assert_near(monte_carlo_samples[i], 7.0 + i, 0);
    const struct model_job greedy = {only_value, &base, SIZE_MAX / 2};
    if (!SANITIZED) /* a sanitizer ends the process instead */
        assert_int_equal(model_monte_carlo(&greedy, 1, 1, monte_carlo_samples, 300), -LH_ENOMEM);
}

static int run_monte_carlo(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figure_9),
        cmocka_unit_test(test_same_by_any_threads),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test summary ---------------------------------------------------------------------------------- */

/* Mean and percentiles of samples. */

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Against sorting: any number of samples, many equal, in order and not. */
static void test_is_what_sorting_finds(void **state)
{
    (void)state;
    static double values[3000];
    static double sorted[3000];
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    for (size_t count = 1; count <= 3000; count = count * 3 / 2 + 1)
        for (unsigned kind = 0; kind < 4; kind++) {
            double sum = 0;
            for (size_t i = 0; i < count; i++) {
                double sampled = kind == 0   ? lh_prng_double(&prng)
                                 : kind == 1 ? (double)lh_prng_below(&prng, 3)
                                 : kind == 2 ? (double)i
                                             : (double)(count - i);
                values[i] = sorted[i] = sampled;
                sum += sampled;
            }
            struct lh_model_summary summary;
            qsort(sorted, count, sizeof *sorted, ascending);
            assert_int_equal(lh_model_summarize(values, count, &summary), 0);
            assert_near(summary.mean_s, sum / (double)count, 1e-12);
            assert_near(summary.p50_s, sorted[(count + 1) / 2 - 1], 0);
            assert_near(summary.p99_s, sorted[(size_t)ceil(0.99 * (double)count) - 1], 0);
            assert_near(summary.p999_s, sorted[(size_t)ceil(0.999 * (double)count) - 1], 0);
            qsort(values, count, sizeof *values, ascending); /* none was lost */
            assert_memory_equal(values, sorted, count * sizeof *values);
        }
}

static void test_error_of_the_mean(void **state)
{
    (void)state;
    double values[] = {1, 3, 1, 3};
    struct lh_model_summary summary;
    assert_int_equal(lh_model_summarize(values, 4, &summary), 0);
    assert_near(summary.mean_s, 2, 0);
    assert_near(summary.mean_error_s, sqrt(4.0 / 3 / 4), 1e-12);
    assert_int_equal(lh_model_summarize(values, 1, &summary), 0);
    assert_near(summary.mean_error_s, 0, 0);
}

static void summary_test_refused(void **state)
{
    (void)state;
    double values[] = {1, NAN};
    struct lh_model_summary summary = {.mean_s = 7};
    assert_int_equal(lh_model_summarize(values, 0, &summary), -LH_EINVAL);
    assert_int_equal(lh_model_summarize(NULL, 1, &summary), -LH_EINVAL);
    assert_int_equal(lh_model_summarize(values, 2, &summary), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "sample 1"));
    assert_near(summary.mean_s, 7, 0);
}

static int run_summary(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_what_sorting_finds),
        cmocka_unit_test(test_error_of_the_mean),
        cmocka_unit_test(summary_test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_delay_summary() + run_monte_carlo() + run_summary();
}
