/*
 * test_params.c - the parameters of `auto`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/auto/params.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <longhaul/error.h>

static void parse(void **state)
{
    (void)state;
    static const char *const wrong[] = {"by",
                                        "by=",
                                        "by=p5",
                                        "by=mean,",
                                        ",",
                                        "overhead=",
                                        "overhead=-1",
                                        "overhead=2x",
                                        "overhead=1e30",
                                        "k=8",
                                        "by=p50,by=p99",
                                        "overhead=1,overhead=1",
                                        "by=p99 ",
                                        " by=p99"};
    enum lh_plan_by by = LH_PLAN_BY_P50;
    double overhead = 7;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(auto_params_parse(wrong[i], &by, &overhead), -LH_EINVAL);
    assert_true(by == LH_PLAN_BY_P50 && overhead == 7);
    assert_int_equal(auto_params_parse("", &by, &overhead), 0);
    assert_true(by == LH_PLAN_BY_MEAN && isinf(overhead));
    assert_int_equal(auto_params_parse("overhead=25%,by=p999", &by, &overhead), 0);
    assert_true(by == LH_PLAN_BY_P999 && overhead == 0.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
