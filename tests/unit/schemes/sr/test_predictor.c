/*
 * test_predictor.c - selective repeat: ideal without loss, a round trip for what is lost at the end, alpha.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/sr/predictor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"
#include "support/predictions.h"

#define PREDICTOR text_predictor
static const struct model_predictor *text_predictor;

static const struct lh_model_path path = {.message_bytes = 4 << 20,
                                          .chunk_bytes = 4096,
                                          .mtu_bytes = 4096,
                                          .bandwidth_bps = 1e9,
                                          .rtt_s = 10e-3,
                                          .loss = 0.01};
static struct model_prediction prediction;

static void of(const char *text, enum lh_model_timing timing, double loss)
{
    struct lh_model_path link = path;
    struct lh_model_scheme scheme;
    link.loss = loss;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    scheme.timing = timing;
    assert_int_equal(prediction_of(&link, &scheme, &prediction), 0);
    assert_ptr_equal(prediction.predictor, PREDICTOR);
}

/* The quantile is the first moment at which that share is complete. */
static void check_distribution(void)
{
    for (double share = 0.05; share < 1; share += 0.1) {
        double seconds = prediction.predictor->quantile(&prediction, share);
        assert_true(prediction.predictor->cdf(&prediction, seconds * (1 + 1e-7)) >= share - 1e-6);
        assert_true(prediction.predictor->cdf(&prediction, seconds * (1 - 1e-7)) <= share + 0.2);
    }
    assert_true(prediction.predictor->cdf(&prediction, prediction.message.ideal_s * 0.99) == 0);
}

static void test_without_loss(void **state)
{
    (void)state;
    for (int timing = 0; timing < 2; timing++) {
        text_predictor = &sr_nack_predictor;
        of("sr-nack", (enum lh_model_timing)timing, 0);
        assert_near(sr_nack_predictor.mean(&prediction), prediction.message.ideal_s, 1e-12);
        assert_near(sr_nack_predictor.overhead_bytes(&prediction), 0, 0);
        text_predictor = &sr_rto_predictor;
        of("sr-rto", (enum lh_model_timing)timing, 0);
        assert_near(sr_rto_predictor.quantile(&prediction, 0.999), prediction.message.ideal_s, 1e-12);
    }
}

static void test_reports_are_faster_than_timeouts(void **state)
{
    (void)state;
    text_predictor = &sr_nack_predictor;
    of("sr-nack", LH_MODEL_TIMING_LONGHAUL, 0.01);
    check_distribution();
    double by_report = sr_nack_predictor.mean(&prediction);
    double repeated = sr_nack_predictor.overhead_bytes(&prediction);
    assert_near(repeated, (4 << 20) * 0.01 / 0.99, 1e-9);
    text_predictor = &sr_rto_predictor;
    of("sr-rto", LH_MODEL_TIMING_LONGHAUL, 0.01);
    check_distribution();
    assert_true(sr_rto_predictor.mean(&prediction) > by_report);
}

static void test_alpha(void **state)
{
    (void)state;
    struct lh_model_scheme scheme = {.kind = LH_MODEL_SR_RTO};
    struct model_parameter alpha = model_parameter_at("alpha=0.5,rto=7");
    struct model_parameter other = model_parameter_at("k=2");
    char out[32];
    struct model_text text = {out, sizeof out, 0};
    int failed = 1;
    assert_false(sr_rto_take(&other, &scheme, &failed));
    assert_true(sr_rto_take(&alpha, &scheme, &failed));
    assert_int_equal(failed, 0);
    assert_near(scheme.rto_rtts, 1.5, 0);
    sr_rto_format(&scheme, &text);
    assert_string_equal(out, ",alpha=0.5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_loss),
        cmocka_unit_test(test_reports_are_faster_than_timeouts),
        cmocka_unit_test(test_alpha),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
