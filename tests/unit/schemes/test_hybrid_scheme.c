/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/predictor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

static struct lh_model_path path_of(uint64_t bytes, double loss)
{
    return (struct lh_model_path){.message_bytes = bytes,
                                  .chunk_bytes = 4096,
                                  .mtu_bytes = 4096,
                                  .bandwidth_bps = 400e9,
                                  .rtt_s = 25e-3,
                                  .loss = loss,
                                  .segment_bytes = 4 << 20};
}

static struct lh_model_times predict(const char *text, const struct lh_model_path *path)
{
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    scheme.timing = LH_MODEL_TIMING_LONGHAUL;
    assert_int_equal(lh_model_predict(path, &scheme, &times), 0);
    return times;
}

/* The lines of issue 21: overhead beyond the loss, and the mean at 128 MiB. */
static void test_overhead(void **state)
{
    (void)state;
    struct lh_model_path path = path_of((uint64_t)128 << 20, 1e-2);
    struct lh_model_times times = predict("hybrid", &path);
    double lost = 1e-2 / (1 - 1e-2);
    assert_true(times.overhead_bytes / (double)path.message_bytes - lost < 0.08);
    double repeats_s = (double)path.message_bytes * 8 / 400e9 / (1 - 1e-2) + 25e-3;
    assert_true(times.mean_s < repeats_s * 1.02);
    path = path_of((uint64_t)8 << 30, 1e-2);
    times = predict("hybrid", &path);
    assert_true(times.overhead_bytes / (double)path.message_bytes - lost < 0.012);
    path = path_of((uint64_t)8 << 30, 1e-4);
    times = predict("hybrid", &path);
    assert_true(times.overhead_bytes / (double)path.message_bytes - 1e-4 < 0.003);
}

/* A smaller target means more parity and fewer failures. */
static void test_target(void **state)
{
    (void)state;
    struct lh_model_path path = path_of((uint64_t)16 << 20, 1e-2);
    double overhead = 0, failures = 1;
    static const char *const texts[] = {"hybrid,target=0.01", "hybrid", "hybrid,target=1e-6"};
    static const double targets[] = {0.01, 1e-4, 1e-6};
    for (size_t i = 0; i < 3; i++) {
        struct lh_model_times times = predict(texts[i], &path);
        assert_true(times.overhead_bytes > overhead && times.p_fallback < failures);
        assert_true(times.p_fallback <= targets[i]);
        overhead = times.overhead_bytes;
        failures = times.p_fallback;
    }
}

/* Distribution, mean and samples are of one piece. */
static void test_distribution(void **state)
{
    (void)state;
    struct lh_model_path path = path_of((uint64_t)1 << 30, 1e-2);
    struct lh_model_scheme scheme;
    assert_int_equal(lh_model_scheme_parse("hybrid", &scheme), 0);
    scheme.timing = LH_MODEL_TIMING_LONGHAUL;
    struct lh_model_times times = predict("hybrid", &path);
    double last = 0, seconds, share;
    for (double wanted = 0.01; wanted < 1; wanted += 0.07) {
        assert_int_equal(lh_model_quantile(&path, &scheme, wanted, &seconds), 0);
        assert_true(seconds >= last);
        last = seconds;
        assert_int_equal(lh_model_cdf(&path, &scheme, seconds * (1 + 1e-9), &share), 0);
        assert_true(share >= wanted - 1e-9);
    }
    static double drawn[20000];
    double sum = 0;
    assert_int_equal(lh_model_sample(&path, &scheme, 1, 1, drawn, 20000), 0);
    for (size_t i = 0; i < 20000; i++)
        sum += drawn[i];
    assert_true(fabs(sum / 20000 / times.mean_s - 1) < 2e-3);
}

static void test_without_loss(void **state)
{
    (void)state;
    struct lh_model_path path = path_of(1 << 20, 0);
    struct lh_model_times times = predict("hybrid", &path);
    assert_true(fabs(times.mean_s / times.ideal_s - 1) < 1e-9);
    assert_true(times.overhead_bytes == 0);
    path.message_bytes = 4096;
    path.loss = 0.3;
    times = predict("hybrid", &path);
    assert_true(times.p_fallback < 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overhead),
        cmocka_unit_test(test_target),
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_without_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
