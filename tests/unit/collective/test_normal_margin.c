/*
 * test_normal_margin.c - against values of the normal distribution, and median_of() against sorted numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/normal_margin.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collective/median.h"

/* E[(X - z)+] = phi(z) - z * Q(z): 0.39894 at 0, 0.08332 at 1, 0.00849 at 2. */
static void test_margin(void **state)
{
    (void)state;
    assert_true(fabs(normal_margin(0.0833155) - 1) < 1e-4);
    assert_true(fabs(normal_margin(0.0084907) - 2) < 1e-4);
    assert_true(normal_margin(0.398) < 0.01);
    assert_true(normal_margin(0.4) == 0);
    assert_true(normal_margin(HUGE_VAL) == 0);
    assert_true(normal_margin(0) <= 6);
}

static void test_median(void **state)
{
    (void)state;
    double odd[] = {3, 1e300, 1}, even[] = {4, 1, 3, 2}, one[] = {7};
    assert_true(median_of(odd, 3) == 3);
    assert_true(median_of(even, 4) == 2.5);
    assert_true(median_of(one, 1) == 7);
    double many[101];
    for (unsigned i = 0; i < 101; i++)
        many[i] = (i * 37) % 101;
    assert_true(median_of(many, 101) == 50);
    for (unsigned i = 0; i < 101; i++)
        assert_true(many[i] == i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_margin),
        cmocka_unit_test(test_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
