/*
 * test_model_params.c - parameters of the codes as the model reads them, and what the planner weighs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/ec/model_params.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"

static int taken(const char *text, struct lh_model_scheme *scheme)
{
    struct model_parameter parameter = model_parameter_at(text);
    int failed = 0;
    return ec_model_take(&parameter, scheme, &failed) ? failed : 1;
}

static void test_take(void **state)
{
    (void)state;
    struct lh_model_scheme scheme = {.kind = LH_MODEL_EC_MDS};
    ec_model_defaults(&scheme);
    assert_int_equal(ec_model_check(&scheme), 0);
    assert_int_equal(taken("k=100,m=2", &scheme), 0);
    assert_int_equal(taken("m=20", &scheme), 0);
    assert_int_equal(taken("spread=3", &scheme), 0);
    assert_int_equal(taken("beta=0.25", &scheme), 0);
    assert_int_equal(taken("fallback=sr", &scheme), 0);
    assert_true(scheme.k == 100 && scheme.m == 20 && scheme.spread == 3);
    assert_near(scheme.beta, 0.25, 0);
    assert_int_equal(scheme.fallback, LH_MODEL_FALLBACK_SR);
    assert_int_equal(taken("k=1.5", &scheme), -LH_EINVAL);
    assert_int_equal(taken("fallback=none", &scheme), -LH_EINVAL);
    assert_int_equal(taken("alpha=2", &scheme), 1);
    assert_int_equal(taken("k", &scheme), 1);
}

static void test_check(void **state)
{
    (void)state;
    struct lh_model_scheme scheme = {.kind = LH_MODEL_EC_XOR, .k = 4, .m = 5};
    assert_int_equal(ec_model_check(&scheme), -LH_EINVAL);
    scheme.kind = LH_MODEL_EC_MDS;
    assert_int_equal(ec_model_check(&scheme), 0);
    scheme.m = 252;
    assert_int_equal(ec_model_check(&scheme), -LH_EINVAL);
    scheme.m = 0;
    assert_int_equal(ec_model_check(&scheme), -LH_EINVAL);
}

static void test_candidates(void **state)
{
    (void)state;
    struct lh_model_scheme out[SCHEME_CANDIDATES_MAX];
    for (int unspread = 0; unspread < 2; unspread++) {
        uint32_t count = ec_xor_candidates(unspread, out);
        assert_in_range(count, 1, SCHEME_CANDIDATES_MAX);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(ec_model_check(&out[i]), 0);
            assert_int_equal(out[i].kind, LH_MODEL_EC_XOR);
            assert_int_equal(out[i].spread, unspread);
        }
        assert_int_equal(ec_mds_candidates(unspread, out), count);
    }
}

/* Each 8 parity chunks more are one more reading of the data. */
static void test_encode_rate(void **state)
{
    (void)state;
    const struct lh_plan_question question = {.mds_bytes_per_s = 8e9, .xor_bytes_per_s = 9e9};
    struct lh_model_scheme scheme = {.m = 8};
    assert_near(ec_mds_encode_rate(&question, &scheme), 8e9, 0);
    assert_near(ec_xor_encode_rate(&question, &scheme), 9e9, 0);
    scheme.m = 9;
    assert_near(ec_mds_encode_rate(&question, &scheme), 4e9, 0);
    assert_near(ec_xor_encode_rate(&question, &scheme), 9e9, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_encode_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
