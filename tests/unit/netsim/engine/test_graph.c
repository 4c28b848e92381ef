/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/engine/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* host 0 and switches 1, 2 in site 0; switch 3 in site 1. */
static struct netsim_node nodes[4];
static struct netsim_cable cables[] = {{.ends = {0, 1}}, {.ends = {1, 2}}, {.ends = {2, 3}}};
static struct netsim_graph graph = {
    .hosts = 1, .nodes_count = 4, .cables_count = 3, .sites = 2, .nodes = nodes, .cables = cables};

static int start(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        nodes[i] =
            (struct netsim_node){.tier = i == 0 ? NETSIM_TIER_HOST : NETSIM_TIER_TOR, .site = i == 3};
    return 0;
}

static void a_long_cable_joins_switches_of_different_sites(void **state)
{
    (void)state;
    assert_false(netsim_cable_is_long(&graph, &cables[0]));
    assert_false(netsim_cable_is_long(&graph, &cables[1]));
    assert_true(netsim_cable_is_long(&graph, &cables[2]));
    const struct netsim_cable to_host = {.ends = {3, 0}};
    assert_false(netsim_cable_is_long(&graph, &to_host));
}

static void its_switches_are_borders(void **state)
{
    (void)state;
    netsim_mark_borders(&graph);
    assert_true(!nodes[0].border && !nodes[1].border && nodes[2].border && nodes[3].border);
}

static void so_are_a_relay_and_its_neighbours_that_switch(void **state)
{
    (void)state;
    nodes[1].tier = NETSIM_TIER_RELAY;
    nodes[3].site = 0;
    netsim_mark_borders(&graph);
    assert_true(!nodes[0].border && nodes[1].border && nodes[2].border && !nodes[3].border);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_long_cable_joins_switches_of_different_sites, start),
        cmocka_unit_test_setup(its_switches_are_borders, start),
        cmocka_unit_test_setup(so_are_a_relay_and_its_neighbours_that_switch, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
