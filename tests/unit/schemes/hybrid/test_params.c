/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include <longhaul/error.h>

#include "schemes/ec/params.h"
#include "schemes/hybrid/strength.h"

static void test_texts(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(hybrid_parse("", params), 0);
    assert_true(hybrid_params_valid(params));
    struct hybrid_params read = hybrid_params_of(params);
    assert_int_equal(read.tail_eighths, HYBRID_TAIL_ALL);
    assert_true(fabs(read.target / HYBRID_TARGET_DEFAULT - 1) < 1e-9);
    assert_true(fabs(read.loss / HYBRID_PRIOR_LOSS - 1) < 1e-9 && read.burst == 1);
    assert_int_equal(hybrid_parse("tail=1.1,target=1e-6", params), 0);
    read = hybrid_params_of(params);
    assert_int_equal(read.tail_eighths, 9);
    assert_true(fabs(read.target / 1e-6 - 1) < 1e-9);
    assert_int_equal(hybrid_parse("tail=0", params), 0);
    assert_int_equal(hybrid_params_of(params).tail_eighths, 0);
}

static void test_bad_texts(void **state)
{
    (void)state;
    static const char *const bad[] = {"target",
                                      "target=",
                                      "target=0",
                                      "target=0.6",
                                      "target=1e-13",
                                      "target=x",
                                      "target=1e-4x",
                                      "tail=2.1",
                                      "tail=-1",
                                      "tail=",
                                      "tail=1,",
                                      ",tail=1",
                                      "k=3",
                                      "tail=1,tail=1",
                                      "target=1e-4,target=1e-4",
                                      "tail=1,,target=1e-4"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t params[LH_SCHEME_PARAMS];
        int error = hybrid_parse(bad[i], params);
        assert_true(error == -LH_EINVAL || error == -LH_ERANGE);
    }
}

/* What was measured comes out again, never as less; and the rest stays. */
static void test_measured_values(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS];
    assert_int_equal(hybrid_parse("target=1e-5,tail=1", params), 0);
    for (double loss = 1e-8; loss < 0.5; loss *= 1.7)
        for (double burst = 1; burst < 3000; burst *= 2.3) {
            hybrid_params_measured(loss, burst, UINT32_MAX, params);
            assert_true(hybrid_params_valid(params));
            struct hybrid_params read = hybrid_params_of(params);
            assert_true(read.loss >= loss * (1 - 1e-9) && read.loss < loss * 1.003);
            assert_true(read.burst >= burst && read.burst < burst + 0.07);
            assert_true(read.tail_eighths == 8 && fabs(read.target / 1e-5 - 1) < 1e-9);
        }
    hybrid_params_measured(0, 0, UINT32_MAX, params);
    assert_true(hybrid_params_valid(params));
    hybrid_params_measured(1, 1e9, UINT32_MAX, params);
    assert_true(hybrid_params_valid(params));
}

static void test_each_byte_is_checked(void **state)
{
    (void)state;
    uint8_t good[LH_SCHEME_PARAMS];
    static const struct {
        size_t at;
        uint8_t value;
    } bad[] = {{0, 4}, {0, 255}, {1, 17}, {1, 254}, {2, 255}, {4, 255}, {6, 255}};
    assert_int_equal(hybrid_parse("", good), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t params[LH_SCHEME_PARAMS];
        memcpy(params, good, sizeof params);
        params[bad[i].at] = bad[i].value;
        assert_false(hybrid_params_valid(params));
    }
    memset(good + 2, 0, 2); /* a target of 1 */
    assert_false(hybrid_params_valid(good));
}

/* Each code is one of schemes/ec, and suffices where it is chosen. */
static void test_codes(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 4; code++) {
        uint8_t params[LH_SCHEME_PARAMS];
        hybrid_code_params(code, params);
        assert_true(ec_mds_params_valid(params));
        assert_true(hybrid_code_size(code) >= HYBRID_SIZE_LEAST);
        assert_true(hybrid_code_size(code) + hybrid_code_rows(code) <= EC_ROWS_MAX);
        assert_true(hybrid_code_rows(code) <= hybrid_code_size(code)); /* a slot holds all parity */
    }
    for (double loss = 1e-6; loss < 0.12; loss *= 1.5) {
        uint32_t code = hybrid_code_for(loss, 1, UINT32_MAX), size = hybrid_code_size(code);
        const struct hybrid_loss of = {loss, 1};
        assert_true(hybrid_strength(&of, size, size, 1e-8, 255) <= hybrid_code_rows(code));
    }
    assert_int_equal(hybrid_code_for(1e-3, 1, UINT32_MAX), 0);
    assert_int_equal(hybrid_code_for(1e-2, 1, UINT32_MAX), 1);
    assert_int_equal(hybrid_code_for(0.4, 1, UINT32_MAX), 3);
    assert_int_equal(hybrid_code_for(0.4, 1, 64), 1); /* a slot of 64 chunks */
    assert_int_equal(hybrid_code_for(0.4, 1, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),           cmocka_unit_test(test_bad_texts),
        cmocka_unit_test(test_measured_values), cmocka_unit_test(test_each_byte_is_checked),
        cmocka_unit_test(test_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
