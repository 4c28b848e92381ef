/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/variables/interface_filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void validity(void **state)
{
    (void)state;
    static const char *const good[] = {"eth", "=eth0", "^docker,lo", "^=lo", "eth,ib,=x"};
    static const char *const bad[] = {"", "^", "=", "^=", "eth,", ",eth", "eth,,ib"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(interface_filter_valid(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(interface_filter_valid(bad[i]));
}

static void prefixes(void **state)
{
    (void)state;
    assert_int_equal(interface_filter_match("eth,ib", "eth0"), 0);
    assert_int_equal(interface_filter_match("eth,ib", "ib3"), 1);
    assert_int_equal(interface_filter_match("eth,ib", "lo"), -1);
    assert_int_equal(interface_filter_match("eth1", "eth"), -1);
}

static void whole_names(void **state)
{
    (void)state;
    assert_int_equal(interface_filter_match("=eth1,eth0", "eth0"), 1);
    assert_int_equal(interface_filter_match("=eth1,eth0", "eth10"), -1);
    assert_int_equal(interface_filter_match("=eth1,eth0", "eth"), -1);
}

static void exclusions(void **state)
{
    (void)state;
    assert_int_equal(interface_filter_match("^docker,lo", "docker0"), -1);
    assert_int_equal(interface_filter_match("^docker,lo", "lo"), -1);
    assert_int_equal(interface_filter_match("^docker,lo", "eth0"), 0);
    assert_int_equal(interface_filter_match("^=lo", "lo0"), 0);
    assert_int_equal(interface_filter_match("^=lo", "lo"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validity),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(whole_names),
        cmocka_unit_test(exclusions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
