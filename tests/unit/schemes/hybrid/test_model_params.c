/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/model_params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "schemes/hybrid/params.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_candidates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
