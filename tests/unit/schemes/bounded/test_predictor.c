/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded/predictor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"

static const struct lh_model_path path = {.message_bytes = 1000000,
                                          .chunk_bytes = 1000,
                                          .mtu_bytes = 1000,
                                          .bandwidth_bps = 1e9,
                                          .rtt_s = 10e-3,
                                          .loss = 0.01};

static struct lh_model_times predict(const char *text, double loss)
{
    struct lh_model_path lossy = path;
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    lossy.loss = loss;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    scheme.timing = LH_MODEL_TIMING_LONGHAUL;
    assert_int_equal(lh_model_predict(&lossy, &scheme, &times), 0);
    return times;
}

static void test_without_loss(void **state)
{
    (void)state;
    struct lh_model_times times = predict("bounded", 0);
    assert_near(times.mean_s, 18e-3, 1e-9);
    assert_near(times.p999_s, 18e-3, 1e-9);
    assert_near(times.delivered, 1, 0);
    assert_near(times.overhead_bytes, 0, 0);
}

/* A window later, and no more. */
static void test_losses_cost_a_window(void **state)
{
    (void)state;
    struct lh_model_times times = predict("bounded", 0.01);
    assert_near(times.p99_s, 18e-3 + 10e-3 / 8, 1e-9);
    assert_near(times.delivered, 0.99, 1e-9);
    assert_near(times.p_fallback, 1 - pow(0.99, 1000), 1e-9);
}

static void test_the_deadline_cuts_off(void **state)
{
    (void)state;
    struct lh_model_times times = predict("bounded:deadline=14ms", 0.01);
    assert_near(times.p999_s, 14e-3, 1e-9);
    assert_near(times.mean_s, 14e-3, 1e-9);
    assert_near(times.delivered, 0.99 / 2, 1e-9); /* 4 of 8 ms */
    assert_near(times.p_fallback, 1, 0);
}

static void test_parity_recovers(void **state)
{
    (void)state;
    struct lh_model_times times = predict("bounded,code=mds,k=32,m=2", 0.01);
    assert_true(times.delivered > 0.9995 && times.delivered < 1);
    assert_near(times.overhead_bytes, 64e3, 64e3 / 32.0);
    struct lh_model_times weaker = predict("bounded,code=xor,k=32,m=2", 0.01);
    assert_true(weaker.delivered > 0.99 && weaker.delivered < times.delivered);
}

/* Segments follow each other: the time is that of one whose parity lies between, and the last one's wait. */
static void test_segments(void **state)
{
    (void)state;
    struct lh_model_path cut = path;
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    double settled_s, open;
    cut.segment_bytes = 250000;
    assert_int_equal(lh_model_scheme_parse("bounded,code=mds,k=25,m=5", &scheme), 0);
    scheme.timing = LH_MODEL_TIMING_LONGHAUL;
    assert_int_equal(lh_model_predict(&cut, &scheme, &times), 0);
    assert_int_equal(lh_model_quantile(&cut, &scheme, 0.999999, &settled_s), 0);
    assert_near(settled_s, 10e-3 + 8e-3 * 1.2 + 10e-3 / 8, 1e-9);
    assert_near(times.overhead_bytes, 200e3, 1e-9);
    assert_int_equal(lh_model_cdf(&cut, &scheme, 10e-3 + 8e-3 * 1.15 - 1e-6, &open), 0);
    assert_near(open, 0, 0);                /* the last data is not there */
    scheme.deadline_s = 10e-3 + 8e-3 * 0.6; /* two segments */
    assert_int_equal(lh_model_predict(&cut, &scheme, &times), 0);
    assert_near(times.delivered, 0.5, 1e-4);
    assert_near(times.p999_s, scheme.deadline_s, 1e-12);
}

/* Without loss it is complete when all has arrived, however the sums of a segment's times are rounded. */
static void test_many_segments(void **state)
{
    (void)state;
    struct lh_model_path cut = path;
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    assert_int_equal(lh_model_scheme_parse("bounded", &scheme), 0);
    scheme.timing = LH_MODEL_TIMING_LONGHAUL;
    cut.loss = 0;
    cut.mtu_bytes = 4096;
    cut.chunk_bytes = 4096;
    cut.bandwidth_bps = 100e9;
    cut.rtt_s = 25e-3;
    cut.segment_bytes = 4u << 20;
    for (uint64_t segments = 1; segments <= 512; segments++) {
        cut.message_bytes = segments * cut.segment_bytes;
        assert_int_equal(lh_model_predict(&cut, &scheme, &times), 0);
        assert_near(times.p999_s, cut.rtt_s + 8 * (double)cut.message_bytes / cut.bandwidth_bps, 1e-12);
        assert_near(times.mean_s, times.p999_s, 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_loss),
        cmocka_unit_test(test_losses_cost_a_window),
        cmocka_unit_test(test_the_deadline_cuts_off),
        cmocka_unit_test(test_parity_recovers),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_many_segments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
