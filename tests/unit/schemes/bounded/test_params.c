/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded/params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "schemes/ec/params.h"

static void test_texts(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(bounded_parse("", params), 0);
    assert_true(bounded_params_valid(params));
    assert_int_equal(bounded_deadline(params), LH_DEADLINE_AUTO);
    assert_false(bounded_params_of(params).codes);
    assert_int_equal(bounded_parse("code=mds,deadline=20ms,m=2,k=32", params), 0);
    assert_true(bounded_params_valid(params));
    struct bounded_params read = bounded_params_of(params);
    assert_int_equal(read.deadline_ns, 20 * LH_NS_PER_MS);
    struct ec_params code = ec_params_of(read.code);
    assert_true(read.codes && code.kind == EC_MDS && code.k == 32 && code.m == 2 && code.spread == 0);
    assert_int_equal(bounded_parse("deadline=none", params), 0);
    assert_true(bounded_params_valid(params));
    assert_true(bounded_deadline(params) == LH_DEADLINE_NONE);
    assert_int_equal(bounded_parse("code=xor", params), 0);
    code = ec_params_of(bounded_params_of(params).code);
    assert_true(code.kind == EC_XOR && code.k == EC_K_DEFAULT && code.m == EC_M_DEFAULT);
}

static void test_bad_texts(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "deadline=0",
        "deadline=",
        "deadline=3",
        "deadline=61min",
        "deadline=999ns",
        "deadline=1s,deadline=1s",
        "code=",
        "code=mds,code=mds",
        "k=2",
        "m=2",
        "code=mds,k=200,m=200",
        "code=xor,k=2,m=3",
        "code=mds,k=2,k=2",
        "beta=1",
        "deadline=1s,",
        ",deadline=1s",
        "deadline",
        "code=mds,k=0",
        "code=mds,k=111111111111111111111111111111111111111111111111111111111111111111"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t params[LH_SCHEME_PARAMS];
        if (bounded_parse(bad[i], params) >= 0)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_true(lh_last_error()[0] != '\0');
    }
}

/* Of a hostile peer: every byte counts. */
static void test_bad_bytes(void **state)
{
    (void)state;
    uint8_t good[LH_SCHEME_PARAMS];
    assert_int_equal(bounded_parse("deadline=20ms,code=mds,k=32,m=2", good), 0);
    static const struct {
        size_t at;
        uint8_t value;
    } bad[] = {{0, 0xff}, {4, 3}, {4, 0}, {5, 0}, {6, 0}, {5, 254}, {7, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t params[LH_SCHEME_PARAMS];
        memcpy(params, good, sizeof params);
        params[bad[i].at] = bad[i].value;
        assert_false(bounded_params_valid(params));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_bad_texts),
        cmocka_unit_test(test_bad_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
