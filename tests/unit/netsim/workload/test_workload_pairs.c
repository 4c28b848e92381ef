/*
 * test_workload_pairs.c - reading who sends to whom.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/workload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static void reads_pairs(void **state)
{
    (void)state;
    struct netsim_pairs pairs;
    assert_int_equal(netsim_pairs_read("k", "a>c, b>c=2.5 ,h>a=0.1", &pairs), 0);
    double sum = 0;
    for (unsigned pair = 0; pair < NETSIM_SITES_MAX * NETSIM_SITES_MAX; pair++)
        sum += pairs.times[pair / NETSIM_SITES_MAX][pair % NETSIM_SITES_MAX];
    assert_true(pairs.any && pairs.times[0][2] == 1 && pairs.times[1][2] == 2.5 &&
                pairs.times[7][0] == 0.1);
    assert_true(sum == 3.6);
    assert_int_equal(netsim_pairs_read("k", "none", &pairs), 0);
    assert_false(pairs.any || pairs.times[0][2] != 0);
}

static void refuses_what_is_no_pair(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",     "a",     "a>",    "a>i",     "A>b",    "a-b",
                                        "a>b,", "a>b c", "a>b=0", "a>b=-1",  "a>b=",   "a>b=1e9",
                                        ",a>b", "a>bb",  "nonee", "a>b=nan", "a>b==2", "none,a>b"};
    struct netsim_pairs pairs = {.any = true};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(netsim_pairs_read("some.key", wrong[i], &pairs), -LH_EINVAL);
        assert_non_null(strstr(lh_last_error(), "some.key \""));
        assert_non_null(strstr(lh_last_error(), "example: a>c,b>c=2"));
    }
    assert_int_equal(netsim_pairs_read("some.key", "a>b,b>a,a>b=2", &pairs), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "a>b is repeated"));
    assert_true(pairs.any && pairs.times[0][1] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_pairs),
        cmocka_unit_test(refuses_what_is_no_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
