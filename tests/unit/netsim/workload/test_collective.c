/*
 * test_collective.c - flows of collectives and what they wait for; sizes, places, refused settings.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/collective.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "collective/schedule/schedule_table.h"
#include "support/netsim_build.h"

static struct netsim_workload_config config_of(const char *collective, uint64_t bytes, uint32_t rounds)
{
    struct netsim_workload_config config = {
        .kind = NETSIM_COLLECTIVE, .bytes = bytes, .rounds = rounds, .schedule = "default"};
    strcpy(config.collective, collective);
    return config;
}

static int build(const struct netsim_workload_config *config, uint32_t hosts, struct netsim_flow_list *list,
                 void **memory)
{
    struct netsim_graph graph = {.hosts = hosts, .sites = 1};
    return build_workload(config, &graph, 1, list, memory);
}

/* Takes the nodes in an order in which each comes after all that it waits for; how many come. */
static uint32_t count_reachable(const struct netsim_dependencies *graph)
{
    uint32_t nodes = netsim_dependencies_nodes(graph);
    uint32_t *waits = malloc(nodes * sizeof *waits);
    uint32_t *order = malloc(nodes * sizeof *order);
    uint32_t known = 0;
    assert_non_null(waits);
    assert_non_null(order);
    memcpy(waits, graph->waits, nodes * sizeof *waits);
    for (uint32_t node = 0; node < nodes; node++)
        if (waits[node] == 0)
            order[known++] = node;
    for (uint32_t i = 0; i < known; i++)
        for (uint32_t at = graph->first[order[i]]; at < graph->first[order[i] + 1]; at++)
            if (--waits[graph->after[at]] == 0)
                order[known++] = graph->after[at];
    free(waits);
    free(order);
    return known;
}

/* Each of 5 members sends each part but one twice; bytes are not a multiple of the members. */
static void test_ring_allreduce(void **state)
{
    (void)state;
    struct netsim_workload_config config = config_of("allreduce", 1003, 3);
    struct netsim_flow_list list;
    void *memory;
    uint64_t bytes = 0;
    config.compute_ps = 77;
    config.members = 5;
    assert_int_equal(build(&config, 10, &list, &memory), 0);
    assert_int_equal(list.count, 3 * 8 * 5);
    assert_int_equal(list.dependents, list.count);
    for (uint32_t i = 0; i < list.count; i++) {
        bytes += list.flows[i].bytes;
        assert_int_equal(list.flows[i].source, i % 5 * 2); /* members are spread */
        assert_int_equal(list.flows[i].destination, (i + 1) % 5 * 2);
        assert_in_range(list.flows[i].bytes, 200, 201);
        assert_int_equal(list.dependencies.waits[i], 1);
    }
    assert_int_equal(bytes, 3 * 8 * 1003);
    assert_int_equal(list.dependencies.tasks, 3 * 5 * 9);
    for (uint32_t i = 0; i < list.dependencies.tasks; i++)
        assert_int_equal(list.dependencies.spans_ps[i], i >= 5 * 9 && i % 9 == 0 ? 77 : 0);
    free(memory);
}

/* A barrier's message is whole. */
static void test_barrier(void **state)
{
    (void)state;
    struct netsim_workload_config config = config_of("barrier", 100, 1);
    struct netsim_flow_list list;
    void *memory;
    assert_int_equal(build(&config, 10, &list, &memory), 0);
    assert_int_equal(list.count, 4 * 10);
    for (uint32_t i = 0; i < list.count; i++)
        assert_int_equal(list.flows[i].bytes, 100);
    free(memory);
}

/* Nothing waits for itself, by whatever way: each node of each schedule becomes ready. */
static void test_all_become_ready(void **state)
{
    (void)state;
    for (const struct schedule *const *s = schedule_table(); *s != NULL; s++) {
        for (uint32_t hosts = 2; hosts <= 20; hosts++) {
            struct netsim_workload_config config = config_of(collective_name((*s)->collective), 100, 3);
            struct netsim_flow_list list;
            void *memory;
            strcpy(config.schedule, (*s)->name);
            assert_int_equal(build(&config, hosts, &list, &memory), 0);
            assert_int_equal(count_reachable(&list.dependencies),
                             netsim_dependencies_nodes(&list.dependencies));
            free(memory);
        }
    }
}

static void test_bad_input(void **state)
{
    (void)state;
    struct netsim_flow_list list;
    void *memory;
    struct netsim_workload_config config = config_of("allreduce", 3, 1);
    assert_int_equal(build(&config, 4, &list, &memory), -LH_ERANGE);
    config = config_of("allreduce", 100, 0);
    assert_int_equal(build(&config, 4, &list, &memory), -LH_ERANGE);
    config = config_of("multicast", 100, 1);
    assert_int_equal(build(&config, 4, &list, &memory), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "broadcast, reduce, allreduce,"));
    config = config_of("alltoall", 100, 1);
    strcpy(config.schedule, "ring");
    assert_int_equal(build(&config, 4, &list, &memory), -LH_EINVAL);
    config = config_of("alltoall", 1u << 20, 1);
    assert_int_equal(build(&config, 65536, &list, &memory), -LH_ERANGE);
    config = config_of("allreduce", 100, 3);
    config.members = 5;
    assert_int_equal(build(&config, 4, &list, &memory), -LH_ERANGE);
    config.members = 4;
    config.compute_ps = NETSIM_TIME_MAX / 2;
    assert_int_equal(build(&config, 4, &list, &memory), -LH_ERANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_allreduce),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_all_become_ready),
        cmocka_unit_test(test_bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
