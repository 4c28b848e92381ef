/*
 * test_keys.c - parameters as text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/controllers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include <longhaul/error.h>
#include <longhaul/units.h>

enum { DELAY, RATE };

static const struct congestion_keys keys = {
    "any",
    {[DELAY] = {"delay", "1us to 10s", lh_parse_time, LH_NS_PER_US, 10 * LH_NS_PER_S},
     [RATE] = {"rate", "1kbit to 1Tbit", lh_parse_rate, 1000, UINT64_C(1000000000000)}}};

static void test_values(void **state)
{
    (void)state;
    uint8_t params[LH_CONGESTION_PARAMS];
    memset(params, 7, sizeof params);
    assert_int_equal(congestion_keys_parse(&keys, "", params), 0);
    assert_int_equal(congestion_keys_value(params, DELAY, 5), 5);
    assert_int_equal(congestion_keys_value(params, RATE, 6), 6);
    assert_int_equal(congestion_keys_parse(&keys, "rate=2Gbit,delay=200us", params), 0);
    assert_int_equal(congestion_keys_value(params, DELAY, 5), 200 * LH_NS_PER_US);
    assert_int_equal(congestion_keys_value(params, RATE, 6), 2000000000);
    assert_int_equal(congestion_keys_parse(&keys, "delay=1us", params), 0);
    assert_int_equal(congestion_keys_parse(&keys, "delay=10s,rate=1Tbit", params), 0);
}

/* The reason is there, and params are as before. */
static void test_refused(void **state)
{
    (void)state;
    const struct {
        const char *text, *reason;
    } cases[] = {
        {"dela=1ms", "no parameter \"dela=1ms\" (use delay, rate)"},
        {"delay", "delay has no value"},
        {"delay=1ms,", "last comma"},
        {",delay=1ms", "no parameter \"\""},
        {"delay=1ms,delay=2ms", "repeated"},
        {"delay=0", "out of range (1us to 10s)"},
        {"delay=999ns", "out of range"},
        {"delay=10001ms", "out of range"},
        {"delay=1", "1"},
        {"rate=x", "x"},
        {"rate=00000000000000000000000000000001Gbit", "too long"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t params[LH_CONGESTION_PARAMS] = {9};
        assert_int_equal(congestion_keys_parse(&keys, cases[i].text, params), -LH_EINVAL);
        assert_non_null(strstr(lh_last_error(), cases[i].reason));
        assert_int_equal(params[0], 9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
