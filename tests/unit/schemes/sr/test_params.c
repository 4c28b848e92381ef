/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

static uint32_t alpha_of(const char *text)
{
    uint8_t params[LH_SCHEME_PARAMS];
    memset(params, 0xff, sizeof(params));
    assert_int_equal(sr_rto_parse(text, params), 0);
    assert_true(sr_rto_params_valid(params));
    return sr_rto_alpha_hundredths(params);
}

static void test_alpha(void **state)
{
    (void)state;
    assert_int_equal(alpha_of(""), 200);
    assert_int_equal(alpha_of("alpha=2"), 200);
    assert_int_equal(alpha_of("alpha=0.25"), 25);
    assert_int_equal(alpha_of("alpha=1.5"), 150);
    assert_int_equal(alpha_of("alpha=100"), 10000);
}

static void test_what_is_not_alpha(void **state)
{
    (void)state;
    static const char *const bad[] = {"alpha",     "alpha=",
                                      "alpha=x",   "alpha=2x",
                                      "alpha=-1",  "alpha=0.24",
                                      "alpha=0",   "alpha=100.01",
                                      "beta=2",    "alpha=2,b",
                                      "2",         " alpha=2",
                                      "alpha=1e1", "alpha=99999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        uint8_t params[LH_SCHEME_PARAMS] = {7};
        assert_int_equal(sr_rto_parse(bad[i], params), -LH_EINVAL);
        assert_int_equal(params[0], 7); /* outputs only on success */
        assert_non_null(strstr(lh_last_error(), "alpha"));
    }
}

static void test_params_from_the_wire(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS] = {0, 24};
    assert_false(sr_rto_params_valid(params));
    params[1] = 25;
    assert_true(sr_rto_params_valid(params));
    params[7] = 1;
    assert_false(sr_rto_params_valid(params));
    uint8_t most[LH_SCHEME_PARAMS] = {0x27, 0x10};
    assert_true(sr_rto_params_valid(most));
    most[1]++;
    assert_false(sr_rto_params_valid(most));
}

static void test_sr_nack_has_none(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS] = {1};
    assert_int_equal(sr_nack_parse("alpha=2", params), -LH_EINVAL);
    assert_false(sr_nack_params_valid(params));
    assert_int_equal(sr_nack_parse("", params), 0);
    assert_true(sr_nack_params_valid(params));
    params[7] = 1;
    assert_false(sr_nack_params_valid(params));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alpha),
        cmocka_unit_test(test_what_is_not_alpha),
        cmocka_unit_test(test_params_from_the_wire),
        cmocka_unit_test(test_sr_nack_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
