/*
 * test_predictor.c - erasure codes: parity, fallback and distribution by both timings.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/ec/predictor.h"

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

#define PREDICTOR &ec_predictor

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

static void test_parity(void **state)
{
    (void)state;
    for (int timing = 0; timing < 2; timing++) {
        of("ec:mds,k=32,m=8", (enum lh_model_timing)timing, 0);
        assert_near(ec_predictor.parity_chunks(&prediction), 1024 / 4.0, 0);
        assert_near(ec_predictor.p_fallback(&prediction), 0, 0);
        assert_near(ec_predictor.overhead_bytes(&prediction), (4 << 20) / 4.0, 1e-9);
    }
}

/* Without a loss the paper's receiver waits for all parity, Longhaul's for none. */
static void test_timing(void **state)
{
    (void)state;
    of("ec:mds,k=32,m=8", LH_MODEL_TIMING_LONGHAUL, 0);
    assert_near(ec_predictor.mean(&prediction), prediction.message.ideal_s, 1e-12);
    of("ec:mds,k=32,m=8", LH_MODEL_TIMING_PAPER, 0);
    double parity_s = 256 * prediction.message.inject_s;
    assert_near(ec_predictor.mean(&prediction), prediction.message.ideal_s + parity_s, 1e-12);
    assert_near(ec_predictor.paper_mean(&prediction), prediction.message.ideal_s + parity_s, 1e-12);
}

static void test_distribution(void **state)
{
    (void)state;
    static const char *const texts[] = {"ec:mds,k=8,m=1", "ec:xor,k=8,m=2", "ec:mds,k=8,m=1,fallback=sr"};
    for (unsigned t = 0; t < 3; t++)
        for (int timing = 0; timing < 2; timing++) {
            of(texts[t], (enum lh_model_timing)timing, 0.01);
            check_distribution();
            assert_true(ec_predictor.p_fallback(&prediction) > 0);
            assert_true(ec_predictor.mean(&prediction) > prediction.message.ideal_s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parity),
        cmocka_unit_test(test_timing),
        cmocka_unit_test(test_distribution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
