/*
 * test_hybrid_scheme.c -
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

#include <longhaul/error.h>

#include "schemes/hybrid_groups.h"
#include "schemes/hybrid_scheme.h"

/* ---- test model params ----------------------------------------------------------------------------- */

static void test_texts(void **state)
{
    (void)state;
    static const char *const texts[] = {"hybrid", "hybrid,target=1e-06", "hybrid,target=0.001,tail=1",
                                        "hybrid,tail=0"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct lh_model_scheme scheme, again;
        char out[LH_MODEL_SCHEME_TEXT_MAX];
        assert_int_equal(lh_model_scheme_parse(texts[i], &scheme), 0);
        assert_int_equal(scheme.kind, LH_MODEL_HYBRID);
        lh_model_scheme_format(&scheme, out, sizeof out);
        assert_int_equal(lh_model_scheme_parse(out, &again), 0);
        assert_true(again.target == scheme.target && again.tail_rtts == scheme.tail_rtts);
    }
    struct lh_model_scheme plain;
    char out[LH_MODEL_SCHEME_TEXT_MAX];
    assert_int_equal(lh_model_scheme_parse("hybrid", &plain), 0);
    assert_true(plain.target == HYBRID_TARGET_DEFAULT);
    assert_string_equal(lh_model_scheme_format(&plain, out, sizeof out), "hybrid");
}

static void test_ranges(void **state)
{
    (void)state;
    struct lh_model_scheme scheme;
    hybrid_model_defaults(&scheme);
    assert_int_equal(hybrid_model_check(&scheme), 0);
    scheme.target = 0.6;
    assert_int_equal(hybrid_model_check(&scheme), -LH_ERANGE);
    hybrid_model_defaults(&scheme);
    scheme.tail_rtts = 2.5;
    assert_int_equal(hybrid_model_check(&scheme), -LH_ERANGE);
}

static void test_candidates(void **state)
{
    (void)state;
    struct lh_model_scheme out[SCHEME_CANDIDATES_MAX];
    assert_int_equal(hybrid_candidates(true, out), 0);
    assert_int_equal(hybrid_candidates(false, out), 1);
    assert_int_equal(hybrid_model_check(&out[0]), 0);
    struct lh_plan_question question;
    lh_plan_init(&question);
    double rate = hybrid_encode_rate(&question, &out[0]);
    assert_true(rate > 0 && rate < question.mds_bytes_per_s);
}

static int run_model_params(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_candidates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test predictor -------------------------------------------------------------------------------- */

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
    static double sampled[20000];
    double sum = 0;
    assert_int_equal(lh_model_sample(&path, &scheme, 1, 1, sampled, 20000), 0);
    for (size_t i = 0; i < 20000; i++)
        sum += sampled[i];
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

static int run_predictor(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overhead),
        cmocka_unit_test(test_target),
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_without_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test scheme ----------------------------------------------------------------------------------- */

static void test_one_name_and_one_code(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS];
    assert_string_equal(hybrid_scheme.name, "hybrid");
    assert_string_equal(hybrid_entry.shown.name, hybrid_scheme.name);
    assert_ptr_equal(hybrid_entry.shown.machines, &hybrid_scheme);
    assert_int_equal(hybrid_scheme.id, 6);
    assert_int_equal(hybrid_scheme.parse("", params), 0);
    hybrid_scheme.measured(0.05, 3, 1024, params);
    assert_true(hybrid_scheme.params_valid(params));
    assert_int_equal(params[0], hybrid_code_for(0.05, 3, 1024));
    assert_true(hybrid_scheme.coding != NULL && hybrid_scheme.deadline == NULL);
}

static int run_scheme(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_name_and_one_code)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_model_params() + run_predictor() + run_scheme();
}
