/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/reach.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_the_last_eighths(void **state)
{
    (void)state;
    struct hybrid_reach reach;
    hybrid_reach_init(&reach);
    assert_int_equal(hybrid_reach_from(&reach, 8), 0); /* nothing was injected */
    for (uint32_t i = 0; i < 400; i++)                 /* 10 a round trip, a stamp each */
        hybrid_reach_on_injection(&reach, i + 1, 8000, 1000 + i * 800);
    assert_int_equal(hybrid_reach_from(&reach, HYBRID_TAIL_ALL), 0);
    assert_int_equal(hybrid_reach_from(&reach, 0), UINT32_MAX);
    uint32_t trip = hybrid_reach_from(&reach, 8), two = hybrid_reach_from(&reach, 16);
    assert_in_range(trip, 383, 393); /* about ten injections, to an eighth; samples are every second one */
    assert_in_range(two, 366, 383);
    assert_true(hybrid_reach_from(&reach, 1) > trip);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_last_eighths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
