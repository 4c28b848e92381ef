/*
 * test_flow_list.c - edges of random graphs, counted and kept.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "netsim/base/flow_list.h"

/* ---- test dependencies ----------------------------------------------------------------------------- */

#define FLOWS 20u
#define TASKS 11u
#define NODES (FLOWS + TASKS)
#define EDGES 60u

struct edge {
    uint32_t before;
    uint32_t after;
};

static void build(struct netsim_dependencies *dependencies, const struct edge *edges, uint32_t count)
{
    static alignas(64) unsigned char memory[4096];
    struct netsim_arena arena = {0};
    netsim_dependencies_init(dependencies, FLOWS, TASKS, count, &arena);
    assert_in_range(arena.used_bytes, 1, sizeof memory);
    memset(memory, 0, sizeof memory);
    arena = (struct netsim_arena){.base = memory, .capacity_bytes = arena.used_bytes};
    netsim_dependencies_init(dependencies, FLOWS, TASKS, count, &arena);
    for (uint32_t i = 0; i < count; i++)
        netsim_dependencies_count(dependencies, edges[i].before, edges[i].after);
    netsim_dependencies_lay_out(dependencies);
    for (uint32_t i = 0; i < count; i++)
        netsim_dependencies_keep(dependencies, edges[i].before, edges[i].after);
}

/* Of each node: what waits for it, in the order of creation, and for how many it waits. */
static void check(const struct netsim_dependencies *dependencies, const struct edge *edges, uint32_t count)
{
    assert_int_equal(netsim_dependencies_nodes(dependencies), NODES);
    for (uint32_t node = 0; node < NODES; node++) {
        uint32_t waits = 0;
        uint32_t at = dependencies->first[node];
        for (uint32_t i = 0; i < count; i++) {
            waits += edges[i].after == node;
            if (edges[i].before == node)
                assert_int_equal(dependencies->after[at++], edges[i].after);
        }
        assert_int_equal(at, dependencies->first[node + 1]);
        assert_int_equal(dependencies->waits[node], waits);
    }
}

static void test_random_graphs(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 3);
    for (uint32_t count = 0; count <= EDGES; count++) {
        struct netsim_dependencies dependencies;
        struct edge edges[EDGES];
        for (uint32_t i = 0; i < count; i++) {
            edges[i].before = (uint32_t)lh_prng_below(&prng, NODES);
            edges[i].after = (edges[i].before + 1 + (uint32_t)lh_prng_below(&prng, NODES - 1)) % NODES;
        }
        build(&dependencies, edges, count);
        check(&dependencies, edges, count);
    }
}

static int run_dependencies(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test flow list -------------------------------------------------------------------------------- */

/* The order of a list of flows. */

#define COUNT 300

/* All lengths, few different starts: the order of equal ones shows in `bytes`. */
static void test_sort_is_stable(void **state)
{
    (void)state;
    static struct netsim_flow_request flows[COUNT];
    static struct netsim_flow_request scratch[COUNT];
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    for (uint32_t count = 0; count <= COUNT; count++) {
        struct netsim_flow_list list = {.flows = flows, .count = count};
        uint64_t sum = 0;
        for (uint32_t i = 0; i < count; i++) {
            flows[i] = (struct netsim_flow_request){.bytes = i, .start_ps = lh_prng_below(&prng, 20)};
            sum += flows[i].start_ps * (i + 1);
        }
        netsim_flow_list_sort(&list, scratch);
        assert_true(netsim_flow_list_is_sorted(&list));
        for (uint32_t i = 0; i < count; i++) {
            sum -= flows[i].start_ps * (flows[i].bytes + 1);
            if (i > 0 && flows[i].start_ps == flows[i - 1].start_ps)
                assert_true(flows[i].bytes > flows[i - 1].bytes);
        }
        assert_true(sum == 0);
    }
}

static void test_is_sorted(void **state)
{
    (void)state;
    struct netsim_flow_request flows[] = {{.start_ps = 1}, {.start_ps = 1}, {.start_ps = 5}};
    struct netsim_flow_list list = {.flows = flows, .count = 3};
    assert_true(netsim_flow_list_is_sorted(&list));
    flows[2].start_ps = 0;
    assert_false(netsim_flow_list_is_sorted(&list));
    list.count = 2;
    assert_true(netsim_flow_list_is_sorted(&list));
    list.count = 0;
    assert_true(netsim_flow_list_is_sorted(&list));
}

static int run_flow_list(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sort_is_stable),
        cmocka_unit_test(test_is_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_dependencies() + run_flow_list();
}
