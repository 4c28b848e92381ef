/*
 * test_route.c - the closed form and the table.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/engine/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Hosts 10 … 21 are below, four behind each pair of ports from 5 on; everything else through 11, 12, 13. */
static void test_closed_form(void **state)
{
    (void)state;
    const struct netsim_route route = {.below_first = 10,
                                       .below_count = 12,
                                       .hosts_per_group = 4,
                                       .below_port = 5,
                                       .below_width = 2,
                                       .up_port = 11,
                                       .up_width = 3};
    for (uint32_t host = 0; host < 40; host++) {
        bool below = host >= 10 && host < 22;
        assert_int_equal(netsim_route_port_count(&route, host), below ? 2 : 3);
        for (uint32_t i = 0; i < (below ? 2u : 3u); i++)
            assert_int_equal(netsim_route_port_at(&route, host, i),
                             below ? 5 + (host - 10) / 4 * 2 + i : 11 + i);
    }
}

/* In the middle of a line: those before through port 4, those after through port 5. */
static void test_both_ways(void **state)
{
    (void)state;
    const struct netsim_route route = {.below_first = 10,
                                       .below_count = 10,
                                       .hosts_per_group = 10,
                                       .below_width = 4,
                                       .up_port = 4,
                                       .up_width = 1,
                                       .after_shift = 1};
    for (uint32_t host = 0; host < 40; host++) {
        bool below = host >= 10 && host < 20;
        assert_int_equal(netsim_route_port_count(&route, host), below ? 4 : 1);
        assert_int_equal(netsim_route_port_at(&route, host, 0), below ? 0 : host < 10 ? 4 : 5);
    }
}

static void test_nothing_above(void **state)
{
    (void)state;
    const struct netsim_route route = {.below_count = 4, .hosts_per_group = 1, .below_width = 1};
    assert_int_equal(netsim_route_port_count(&route, 3), 1);
    assert_int_equal(netsim_route_port_at(&route, 3, 0), 3);
    assert_int_equal(netsim_route_port_count(&route, 4), 0);
}

static void test_table(void **state)
{
    (void)state;
    static const uint32_t first[] = {0, 1, 1, 4};
    static const uint16_t choices[] = {9, 3, 2, 7};
    const struct netsim_route route = {.table_first = first, .table_choices = choices};
    assert_int_equal(netsim_route_port_count(&route, 0), 1);
    assert_int_equal(netsim_route_port_count(&route, 1), 0);
    assert_int_equal(netsim_route_port_count(&route, 2), 3);
    assert_int_equal(netsim_route_port_at(&route, 0, 0), 9);
    assert_int_equal(netsim_route_port_at(&route, 2, 2), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_form),
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_nothing_above),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
