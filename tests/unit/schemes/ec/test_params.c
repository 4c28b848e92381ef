/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

static struct ec_params read_mds(const char *text)
{
    uint8_t params[LH_SCHEME_PARAMS];
    memset(params, 0xff, sizeof(params));
    if (ec_mds_parse(text, params) != 0)
        fail_msg("\"%s\": %s", text, lh_last_error());
    assert_true(ec_mds_params_valid(params));
    assert_false(ec_xor_params_valid(params));
    return ec_params_of(params);
}

static void test_defaults(void **state)
{
    (void)state;
    struct ec_params params = read_mds("");
    assert_int_equal(params.kind, EC_MDS);
    assert_int_equal(params.k, 32);
    assert_int_equal(params.m, 8);
    assert_int_equal(params.spread, 0);
    assert_int_equal(params.beta_hundredths, 50);
    assert_int_equal(params.fallback, EC_FALLBACK_IR);
    uint8_t bytes[LH_SCHEME_PARAMS];
    assert_int_equal(ec_xor_parse("", bytes), 0);
    assert_true(ec_xor_params_valid(bytes));
    assert_false(ec_mds_params_valid(bytes));
    assert_int_equal(ec_params_of(bytes).kind, EC_XOR);
}

static void test_keys_in_any_order(void **state)
{
    (void)state;
    struct ec_params params = read_mds("fallback=sr,beta=1.25,m=3,spread=7,k=10");
    assert_int_equal(params.k, 10);
    assert_int_equal(params.m, 3);
    assert_int_equal(params.spread, 7);
    assert_int_equal(params.beta_hundredths, 125);
    assert_int_equal(params.fallback, EC_FALLBACK_SR);
    assert_int_equal(read_mds("fallback=ir").fallback, EC_FALLBACK_IR);
}

static void test_the_ends_of_each_range(void **state)
{
    (void)state;
    assert_int_equal(read_mds("k=1,m=254").m, 254);
    assert_int_equal(read_mds("k=254,m=1").k, 254);
    assert_int_equal(read_mds("k=1,m=1").k, 1);
    assert_int_equal(read_mds("spread=65535").spread, 65535);
    assert_int_equal(read_mds("beta=0").beta_hundredths, 0);
    assert_int_equal(read_mds("beta=100").beta_hundredths, 10000);
}

static void test_what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *named;
    } bad[] = {
        {"k", "k needs a value"},
        {"q=1", "no parameter \"q=1\""},
        {"=1", "no parameter \"=1\""},
        {"k=1,", "no parameter \"\""},
        {",k=1", "no parameter \"\""},
        {" k=1", "no parameter \" k=1\""},
        {"K=1", "no parameter"},
        {"k=", "\"k=\" is not a whole number"},
        {"k=0", "\"k=0\" is not a whole number from 1 to 254"},
        {"k=255", "\"k=255\" is not"},
        {"k=3.5", "\"k=3.5\" is not"},
        {"k=-1", "\"k=-1\" is not"},
        {"k=4294967297", "\"k=4294967297\" is not"},
        {"m=0", "\"m=0\" is not"},
        {"m=8x", "\"m=8x\" is not"},
        {"spread=65536", "\"spread=65536\" is not a whole number from 0 to 65535"},
        {"beta=", "\"beta=\" is not a number"},
        {"beta=100.01", "\"beta=100.01\" is not a number from 0 to 100"},
        {"beta=0.001", "\"beta=0.001\""},
        {"beta=1x,k=2", "\"beta=1x\""},
        {"beta=1,k=2x", "\"k=2x\""},
        {"fallback=", "fallback=: invalid fallback"},
        {"fallback=irx", "fallback=irx: invalid fallback"},
        {"fallback=i", "fallback=i: invalid fallback"},
        {"k=4,m=2,k=4", "k is given twice, the second time as \"k=4\""},
        {"k=200,m=56", "k=200 and m=56 are more than 255"},
        {"m=254", "k=32 and m=254"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        uint8_t params[LH_SCHEME_PARAMS] = {7};
        assert_int_equal(ec_mds_parse(bad[i].text, params), -LH_EINVAL);
        assert_int_equal(params[0], 7); /* outputs only on success */
        if (strstr(lh_last_error(), bad[i].named) == NULL)
            fail_msg("\"%s\" gives: %s", bad[i].text, lh_last_error());
    }
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(ec_xor_parse("k=4,m=5", params), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "m=5"));
    assert_int_equal(ec_xor_parse("k=4,m=4", params), 0);
    assert_int_equal(ec_xor_parse("nothing", params), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "ec:xor"));
}

static void test_params_from_the_wire(void **state)
{
    (void)state;
    static const uint8_t good[LH_SCHEME_PARAMS] = {2, 32, 8, 1, 0xff, 0xff, 0x27, 0x10};
    static const struct {
        size_t at;
        uint8_t value;
    } bad[] = {{0, 0}, {0, 1}, {0, 3}, {1, 0}, {1, 248}, {2, 0}, {2, 224}, {3, 2}, {7, 0x11}, {6, 0x28}};
    assert_true(ec_mds_params_valid(good));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        uint8_t params[LH_SCHEME_PARAMS];
        memcpy(params, good, sizeof(params));
        params[bad[i].at] = bad[i].value;
        assert_false(ec_mds_params_valid(params));
    }
    uint8_t edge[LH_SCHEME_PARAMS] = {2, 247, 8, 0, 0, 0, 0, 0};
    assert_true(ec_mds_params_valid(edge));
    uint8_t xor_params[LH_SCHEME_PARAMS] = {1, 8, 8, 0, 0, 0, 0, 0};
    assert_true(ec_xor_params_valid(xor_params));
    xor_params[2] = 9;
    assert_false(ec_xor_params_valid(xor_params));
}

static uint32_t fresh(enum ec_kind kind, uint32_t k, uint32_t m)
{
    struct ec_params params = {.kind = kind, .k = k, .m = m};
    return ec_fresh_rows(&params);
}

static void test_fresh_rows(void **state)
{
    (void)state;
    assert_int_equal(fresh(EC_MDS, 32, 8), 8);
    assert_int_equal(fresh(EC_MDS, 32, 16), 16);
    assert_int_equal(fresh(EC_MDS, 32, 17), 15); /* not more parity than data */
    assert_int_equal(fresh(EC_MDS, 8, 8), 0);
    assert_int_equal(fresh(EC_MDS, 4, 8), 0);
    assert_int_equal(fresh(EC_MDS, 240, 10), 5); /* the code ends */
    assert_int_equal(fresh(EC_MDS, 200, 55), 0);
    assert_int_equal(fresh(EC_XOR, 32, 8), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_keys_in_any_order),
        cmocka_unit_test(test_the_ends_of_each_range),
        cmocka_unit_test(test_what_is_wrong_is_named),
        cmocka_unit_test(test_params_from_the_wire),
        cmocka_unit_test(test_fresh_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
