/*
 * test_collective.c - flows of collectives and what they wait for; how long they take where nothing is
 * lost; sizes, places, refused settings.
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

/* `sites` of as many members as they can have; the first ones have one more. */
static int build_sites(const struct netsim_workload_config *config, uint32_t hosts, uint32_t sites,
                       struct netsim_flow_list *list, void **memory)
{
    static struct netsim_node nodes[64];
    struct netsim_graph graph = {.hosts = hosts, .sites = sites, .nodes = nodes};
    assert_true(hosts <= 64);
    for (uint32_t i = 0; i < hosts; i++)
        nodes[i].site = (uint8_t)(i * sites / hosts);
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
        /* for what came a step before; of a later operation for its member to begin it, too */
        assert_int_equal(list.dependencies.waits[i], (i % 40 >= 5) + (i >= 40));
    }
    assert_int_equal(bytes, 3 * 8 * 1003);
    assert_int_equal(list.dependencies.tasks, 3 * 5);
    for (uint32_t i = 0; i < list.dependencies.tasks; i++)
        assert_int_equal(list.dependencies.spans_ps[i], i >= 5 ? 77 : 0);
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
            config.by_steps = hosts % 2 == 1;
            strcpy(config.schedule, (*s)->name);
            assert_int_equal(build(&config, hosts, &list, &memory), 0);
            assert_int_equal(count_reachable(&list.dependencies),
                             netsim_dependencies_nodes(&list.dependencies));
            free(memory);
        }
    }
}

/* ---- what waits for what, by brute force -------------------------------------------------------------- */

#define FLOWS_MAX 4096u

/* A flow, found by the schedule alone. */
struct sent {
    struct schedule_transfer blocks;
    uint32_t from;
    uint32_t step;
};

static uint32_t list_sent(const struct schedule *schedule, const struct schedule_shape *shape,
                          struct sent *sent)
{
    uint32_t count = 0;
    for (uint32_t step = 0; step < schedule_steps(schedule, shape); step++)
        for (uint32_t rank = 0; rank < shape->ranks; rank++) {
            struct schedule_cursor cursor = {0};
            struct schedule_transfer transfer;
            while (schedule_next_send(schedule, shape, rank, step, &cursor, &transfer)) {
                assert_true(count < FLOWS_MAX);
                sent[count++] = (struct sent){transfer, rank, step};
            }
        }
    return count;
}

static bool carries(const struct sent *after, const struct sent *before)
{
    return before->step < after->step && before->blocks.peer == after->from &&
           before->blocks.first < after->blocks.first + after->blocks.count &&
           after->blocks.first < before->blocks.first + before->blocks.count;
}

/* reached[node]: all that comes before `end` does, by whatever way. */
static void mark_before(const struct netsim_dependencies *graph, uint32_t end, bool *reached)
{
    bool more = true;
    memset(reached, 0, netsim_dependencies_nodes(graph));
    reached[end] = true;
    while (more) {
        more = false;
        for (uint32_t node = netsim_dependencies_nodes(graph); node-- > 0;)
            for (uint32_t i = graph->first[node]; i < graph->first[node + 1] && !reached[node]; i++)
                more |= reached[node] = reached[graph->after[i]];
    }
}

/* Whether it does so directly, or by joins alone. */
static bool waits_directly(const struct netsim_dependencies *graph, uint32_t before, uint32_t after)
{
    for (uint32_t i = graph->first[before]; i < graph->first[before + 1]; i++) {
        uint32_t next = graph->after[i];
        if (next == after || (next >= graph->flows && waits_directly(graph, next, after)))
            return true;
    }
    return false;
}

static void check_waits(const struct schedule *schedule, uint32_t hosts, uint32_t sites)
{
    static struct sent sent[FLOWS_MAX];
    static bool reached[4 * FLOWS_MAX];
    bool parts = schedule->collective != COLLECTIVE_BROADCAST && schedule->collective != COLLECTIVE_REDUCE;
    struct netsim_workload_config config = config_of(collective_name(schedule->collective), 1000, 1);
    struct netsim_flow_list list;
    struct site_map map;
    uint32_t numbers[4 * 64 + 1], site_of[64];
    void *memory;
    config.block_bytes = parts ? 0 : 200;
    strcpy(config.schedule, schedule->name);
    struct schedule_shape shape = {.ranks = hosts, .blocks = parts ? hosts : 5};
    if (schedule->collective == COLLECTIVE_BARRIER)
        shape.blocks = 1;
    for (uint32_t i = 0; i < hosts; i++)
        site_of[i] = i * sites / hosts;
    site_map_build(&map, site_of, NULL, hosts, numbers);
    if (sites > 1 && schedule->collective != COLLECTIVE_BARRIER)
        shape.map = &map;
    uint32_t count = list_sent(schedule, &shape, sent);
    if (!parts) /* a flow is a block, a transfer may be more */
        for (uint32_t i = 0; i < count; i++)
            if (sent[i].blocks.count > 1)
                return;
    assert_int_equal(build_sites(&config, hosts, sites, &list, &memory), 0);
    assert_int_equal(list.count, count);
    assert_true(netsim_dependencies_nodes(&list.dependencies) <= 4 * FLOWS_MAX);
    for (uint32_t after = 0; after < count; after++) {
        assert_int_equal(list.flows[after].destination, sent[after].blocks.peer);
        mark_before(&list.dependencies, after, reached);
        for (uint32_t before = 0; before < count; before++) {
            if (carries(&sent[after], &sent[before]))
                assert_true(reached[before]);
            else
                assert_false(waits_directly(&list.dependencies, before, after));
        }
    }
    free(memory);
}

static void test_waits(void **state)
{
    (void)state;
    static const uint32_t hosts[] = {2, 3, 5, 8};
    for (const struct schedule *const *s = schedule_table(); *s != NULL; s++)
        for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
            for (uint32_t sites = 1; sites <= 3 && sites <= hosts[i]; sites++)
                check_waits(*s, hosts[i], sites);
}

/* ---- how long an ideal network takes ------------------------------------------------------------------ */

/* Each member sends one flow at a time, in the order of the list; one takes 1, `delayed` takes more. */
static double ideal_time(const struct netsim_flow_list *list, uint32_t delayed, double delay)
{
    const struct netsim_dependencies *graph = &list->dependencies;
    uint32_t nodes = netsim_dependencies_nodes(graph);
    double *ready = calloc(nodes, sizeof *ready), port[64] = {0}, end = 0;
    assert_non_null(ready);
    for (uint32_t i = 0; i < list->count; i++) { /* those before it are in front of it */
        double *free_at = &port[list->flows[i].source];
        *free_at = (ready[i] > *free_at ? ready[i] : *free_at) + 1 + (i == delayed ? delay : 0);
        end = *free_at > end ? *free_at : end;
        for (uint32_t at = graph->first[i]; at < graph->first[i + 1]; at++) {
            uint32_t after = graph->after[at];
            assert_true(after > i && after < list->count);
            ready[after] = *free_at > ready[after] ? *free_at : ready[after];
        }
    }
    free(ready);
    return end;
}

static void check_ideal(const char *schedule, uint32_t hosts, uint32_t blocks, uint32_t steps)
{
    struct netsim_workload_config config = config_of("broadcast", 100 * (uint64_t)blocks, 1);
    struct netsim_flow_list list;
    void *memory;
    config.block_bytes = 100;
    strcpy(config.schedule, schedule);
    assert_int_equal(build_sites(&config, hosts, 1, &list, &memory), 0);
    assert_int_equal(list.count, (hosts - 1) * blocks);
    assert_true(ideal_time(&list, UINT32_MAX, 0) == steps);
    for (uint32_t delayed = 0; delayed < list.count; delayed++) /* RDMC 4.5 */
        for (double delay = 0.5; delay < 20; delay *= 2)
            assert_true(ideal_time(&list, delayed, delay) <= steps + delay);
    free(memory);
}

static void test_ideal_times(void **state)
{
    (void)state;
    for (uint32_t l = 1, hosts = 2; l <= 4; l++, hosts *= 2)
        for (uint32_t blocks = 1; blocks <= 20; blocks += 3) {
            check_ideal("binomial-pipeline", hosts, blocks, l + blocks - 1);
            check_ideal("chain", hosts, blocks, hosts + blocks - 2);
            check_ideal("sequential", hosts, blocks, (hosts - 1) * blocks);
        }
    check_ideal("binomial-pipeline", 13, 7, 4 + 7 - 1);
    check_ideal("chain", 13, 7, 13 + 7 - 2);
}

/* ---- blocks and sites --------------------------------------------------------------------------------- */

static void check_flows(struct netsim_workload_config config, uint64_t block_bytes, uint32_t count,
                        uint64_t longest)
{
    struct netsim_flow_list list;
    void *memory;
    uint64_t found = 0;
    config.block_bytes = block_bytes;
    assert_int_equal(build(&config, 4, &list, &memory), 0);
    assert_int_equal(list.count, count);
    for (uint32_t i = 0; i < list.count; i++)
        found = list.flows[i].bytes > found ? list.flows[i].bytes : found;
    assert_int_equal(found, longest);
    free(memory);
}

/* A broadcast has blocks of 256 KiB, others a part for each member, whose transfers are whole. */
static void test_blocks(void **state)
{
    (void)state;
    struct netsim_workload_config tree = config_of("broadcast", 1000, 1);
    strcpy(tree.schedule, "binomial-tree");
    check_flows(config_of("broadcast", 1u << 20, 1), 0, 3 * 4, 1u << 18);
    check_flows(config_of("broadcast", (1u << 20) + 1, 1), 0, 3 * 5, 209716);
    check_flows(config_of("broadcast", 1000, 1), 100, 3 * 10, 100);
    check_flows(tree, 250, 3 * 4, 250); /* a transfer is cut */
    check_flows(config_of("allreduce", 4000, 1), 0, 6 * 4, 1000);
    check_flows(config_of("allreduce", 4000, 1), 250, 6 * 4 * 4, 250);
    check_flows(config_of("barrier", 1000, 1), 10, 2 * 4, 1000);
    strcpy(tree.collective, "allreduce");
    strcpy(tree.schedule, "halving-doubling");
    tree.bytes = 4000;
    check_flows(tree, 0, 4 * 4, 2000);
    check_flows(tree, 1000, 4 * (2 + 1 + 1 + 2), 1000);
}

/* Each block crosses to each other site once by `hybrid`; without sites there is one to cross. */
static void test_sites(void **state)
{
    (void)state;
    for (uint32_t sites = 2; sites <= 5; sites++) {
        struct netsim_workload_config config = config_of("broadcast", 1000, 1);
        struct netsim_flow_list list;
        void *memory;
        uint32_t crossing = 0;
        config.block_bytes = 100;
        strcpy(config.schedule, "hybrid");
        assert_int_equal(build_sites(&config, 30, sites, &list, &memory), 0);
        assert_int_equal(list.count, 29 * 10);
        for (uint32_t i = 0; i < list.count; i++)
            crossing += list.flows[i].source * sites / 30 != list.flows[i].destination * sites / 30;
        assert_int_equal(crossing, (sites - 1) * 10);
        free(memory);
    }
}

static void test_bad_blocks(void **state)
{
    (void)state;
    struct netsim_flow_list list;
    void *memory;
    struct netsim_workload_config config = config_of("broadcast", 1u << 30, 1);
    config.block_bytes = 1;
    assert_int_equal(build(&config, 4, &list, &memory), -LH_ERANGE);
    assert_non_null(strstr(lh_last_error(), "workload.block"));
    config = config_of("allreduce", 1003, 1);
    config.block_bytes = 1; /* 5 parts of 201 */
    assert_int_equal(build(&config, 5, &list, &memory), -LH_ERANGE);
    config = config_of("allgather", 1u << 20, 1);
    assert_int_equal(build(&config, 10000, &list, &memory), -LH_ERANGE);
    assert_non_null(strstr(lh_last_error(), "workload.members"));
    config = config_of("allreduce", UINT64_C(1) << 40, 1);
    strcpy(config.schedule, "direct");
    config.block_bytes = UINT64_C(1) << 21; /* 2^19 of them, of which each member sends all to 127 */
    assert_int_equal(build(&config, 128, &list, &memory), -LH_ERANGE);
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
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_ideal_times),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_bad_blocks),
        cmocka_unit_test(test_bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
