/*
 * test_collective_workload.c - flows of collectives and what they wait for; how long they take where
 * nothing is
 * lost; sizes, places, refused settings.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "collective/schedules.h"
#include "netsim/workload/workload.h"
#include "support/netsim_build.h"

/* ---- test collective ------------------------------------------------------------------------------- */

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

static int run_collective(void)
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

/* ---- test rounds ----------------------------------------------------------------------------------- */

/* Permutation, incast, all-to-all; rounds, gaps and jitter; the order of the list. */

/* Workloads look at no more of a graph than this, save for poisson. */
static struct netsim_graph hosts_only(uint32_t hosts)
{
    return (struct netsim_graph){.hosts = hosts, .sites = 1};
}

static struct netsim_workload_config workload(enum netsim_workload_kind kind)
{
    return (struct netsim_workload_config){
        .kind = kind, .bytes = 1000, .receiver = UINT32_MAX, .rounds = 1, .load = 0.5};
}

static struct netsim_flow_list rounds_build(const struct netsim_workload_config *config, uint32_t hosts,
                                            uint64_t seed, void **memory)
{
    struct netsim_graph graph = hosts_only(hosts);
    struct netsim_flow_list list;
    assert_int_equal(build_workload(config, &graph, seed, &list, memory), 0);
    return list;
}

static void check_derangement(const struct netsim_flow_request *flows, uint32_t hosts)
{
    bool *receives = calloc(hosts, sizeof *receives);
    assert_non_null(receives);
    for (uint32_t i = 0; i < hosts; i++) {
        assert_int_equal(flows[i].source, i);
        assert_true(flows[i].destination < hosts && flows[i].destination != i);
        assert_false(receives[flows[i].destination]);
        receives[flows[i].destination] = true;
        assert_true(flows[i].bytes == 1000);
    }
    free(receives);
}

static void test_permutations_are_derangements(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {2, 3, 4, 17, 1024};
    struct netsim_workload_config config = workload(NETSIM_PERMUTATION);
    config.rounds = 50;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *memory;
        struct netsim_flow_list list = rounds_build(&config, sizes[i], 1, &memory);
        assert_int_equal(list.count, 50 * sizes[i]);
        for (uint32_t round = 0; round < 50; round++)
            check_derangement(list.flows + (size_t)round * sizes[i], sizes[i]);
        free(memory);
    }
}

/* Four hosts have nine derangements. Each comes as often as the others: chi-square of 8 degrees of freedom
 * is below 26 save for one seed in a thousand. */
static void test_every_derangement_is_as_likely(void **state)
{
    (void)state;
    void *memory;
    struct netsim_workload_config config = workload(NETSIM_PERMUTATION);
    config.rounds = 9000;
    struct netsim_flow_list list = rounds_build(&config, 4, 5, &memory);
    uint32_t seen[256] = {0};
    for (uint32_t i = 0; i < list.count; i += 4) {
        unsigned code = 0;
        for (uint32_t host = 0; host < 4; host++)
            code = code * 4 + list.flows[i + host].destination;
        seen[code]++;
    }
    unsigned kinds = 0;
    double chi_square = 0;
    for (unsigned code = 0; code < 256; code++) {
        if (seen[code] == 0)
            continue;
        kinds++;
        chi_square += (seen[code] - 1000.0) * (seen[code] - 1000.0) / 1000.0;
    }
    assert_int_equal(kinds, 9);
    assert_true(chi_square < 26);
    free(memory);
}

/* Two sites of so many hosts, in turn. */
static struct netsim_flow_list rounds_build_sites(const struct netsim_workload_config *config,
                                                  struct netsim_node nodes[16], void **memory)
{
    struct netsim_graph graph = {.hosts = 16, .sites = 2, .nodes = nodes};
    struct netsim_flow_list list;
    for (uint32_t host = 0; host < 16; host++)
        nodes[host].site = host % 2;
    assert_int_equal(build_workload(config, &graph, 3, &list, memory), 0);
    return list;
}

static void test_permutations_by_site(void **state)
{
    (void)state;
    void *memory;
    struct netsim_node nodes[16] = {0};
    struct netsim_workload_config config = workload(NETSIM_PERMUTATION);
    config.rounds = 20;
    for (config.matrix = NETSIM_ACROSS; config.matrix <= NETSIM_INSIDE; config.matrix++) {
        struct netsim_flow_list list = rounds_build_sites(&config, nodes, &memory);
        uint32_t flows = config.matrix == NETSIM_ACROSS ? 8 : 16;
        assert_int_equal(list.count, 20 * flows);
        for (uint32_t round = 0; round < 20; round++) {
            uint32_t sent = 0;
            uint32_t received = 0;
            for (uint32_t i = flows * round; i < flows * (round + 1); i++) {
                const struct netsim_flow_request *flow = &list.flows[i];
                assert_true(flow->source != flow->destination);
                if (config.matrix == NETSIM_ACROSS)
                    assert_true(flow->source % 2 == 0 && flow->destination % 2 == 1);
                else
                    assert_int_equal(flow->source % 2, flow->destination % 2);
                sent |= 1u << flow->source;
                received |= 1u << flow->destination;
            }
            assert_int_equal(sent, config.matrix == NETSIM_ACROSS ? 0x5555 : 0xffff);
            assert_int_equal(received, config.matrix == NETSIM_ACROSS ? 0xaaaa : 0xffff);
        }
        free(memory);
    }
}

/* Of one site the first half sends to the second; of an odd number one more receives. */
static void test_permutations_across_halves(void **state)
{
    (void)state;
    void *memory;
    struct netsim_workload_config config = workload(NETSIM_PERMUTATION);
    config.matrix = NETSIM_ACROSS;
    struct netsim_flow_list list = rounds_build(&config, 7, 1, &memory);
    assert_int_equal(list.count, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(list.flows[i].source == i && list.flows[i].destination >= 3);
    free(memory);

    struct netsim_node nodes[3] = {{.site = 0}, {.site = 0}, {.site = 1}};
    struct netsim_graph graph = {.hosts = 3, .sites = 2, .nodes = nodes};
    assert_int_equal(build_workload(&config, &graph, 1, &list, &memory), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "2 hosts of site 0"));
    config.matrix = NETSIM_INSIDE;
    assert_int_equal(build_workload(&config, &graph, 1, &list, &memory), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "site 1 has only one host"));
}

static void test_the_seed_decides(void **state)
{
    (void)state;
    void *memory[3];
    struct netsim_workload_config config = workload(NETSIM_PERMUTATION);
    struct netsim_flow_list first = rounds_build(&config, 100, 1, &memory[0]);
    struct netsim_flow_list again = rounds_build(&config, 100, 1, &memory[1]);
    struct netsim_flow_list other = rounds_build(&config, 100, 2, &memory[2]);
    assert_memory_equal(first.flows, again.flows, 100 * sizeof *first.flows);
    assert_memory_not_equal(first.flows, other.flows, 100 * sizeof *first.flows);
    for (int i = 0; i < 3; i++)
        free(memory[i]);
}

static void test_incast(void **state)
{
    (void)state;
    void *memory;
    struct netsim_workload_config config = workload(NETSIM_INCAST);
    config.senders = 7;
    config.receiver = 3;
    config.rounds = 20;
    struct netsim_flow_list list = rounds_build(&config, 16, 1, &memory);
    assert_int_equal(list.count, 140);
    for (uint32_t round = 0; round < 20; round++) {
        uint32_t sent = 0;
        for (uint32_t i = 7 * round; i < 7 * round + 7; i++) {
            assert_int_equal(list.flows[i].destination, 3);
            assert_true(list.flows[i].source < 16 && list.flows[i].source != 3);
            assert_false(sent & 1u << list.flows[i].source);
            sent |= 1u << list.flows[i].source;
        }
    }
    free(memory);
}

/* All others send, to a host that is drawn anew each round. */
static void test_incast_by_default(void **state)
{
    (void)state;
    void *memory;
    struct netsim_workload_config config = workload(NETSIM_INCAST);
    config.rounds = 200;
    struct netsim_flow_list list = rounds_build(&config, 16, 1, &memory);
    assert_int_equal(list.count, 200 * 15);
    uint32_t receivers = 0;
    for (uint32_t i = 0; i < list.count; i++) {
        assert_int_equal(list.flows[i].destination, list.flows[i / 15 * 15].destination);
        receivers |= 1u << list.flows[i].destination;
    }
    assert_int_equal(receivers, 0xffff);
    free(memory);
}

static void test_all_to_all(void **state)
{
    (void)state;
    void *memory;
    struct netsim_workload_config config = workload(NETSIM_ALL_TO_ALL);
    config.rounds = 2;
    struct netsim_flow_list list = rounds_build(&config, 9, 1, &memory);
    assert_int_equal(list.count, 2 * 72);
    unsigned seen[81] = {0};
    for (uint32_t i = 0; i < list.count; i++)
        seen[list.flows[i].source * 9 + list.flows[i].destination]++;
    for (unsigned i = 0; i < 81; i++)
        assert_int_equal(seen[i], i / 9 == i % 9 ? 0 : 2);
    free(memory);
}

static void test_rounds_and_gaps(void **state)
{
    (void)state;
    void *memory;
    struct netsim_workload_config config = workload(NETSIM_ALL_TO_ALL);
    config.rounds = 3;
    config.gap_ps = 5 * NETSIM_PS_PER_US;
    struct netsim_flow_list list = rounds_build(&config, 3, 1, &memory);
    for (uint32_t i = 0; i < list.count; i++)
        assert_true(list.flows[i].start_ps == i / 6 * 5 * NETSIM_PS_PER_US);
    free(memory);
}

/* Jitter shuffles the rounds, changes no pair, and the list stays in order. */
static void test_jitter(void **state)
{
    (void)state;
    void *memory[2];
    struct netsim_workload_config config = workload(NETSIM_PERMUTATION);
    config.rounds = 40;
    config.gap_ps = NETSIM_PS_PER_US;
    struct netsim_flow_list calm = rounds_build(&config, 25, 3, &memory[0]);
    config.jitter_ps = 3 * NETSIM_PS_PER_US;
    struct netsim_flow_list list = rounds_build(&config, 25, 3, &memory[1]);
    assert_int_equal(list.count, calm.count);
    unsigned pairs[625] = {0};
    uint64_t last_ps = 0;
    double sum_ps = 0;
    for (uint32_t i = 0; i < list.count; i++) {
        assert_true(list.flows[i].start_ps >= last_ps);
        last_ps = list.flows[i].start_ps;
        sum_ps += (double)list.flows[i].start_ps - (double)calm.flows[i].start_ps;
        pairs[list.flows[i].source * 25 + list.flows[i].destination]++;
        pairs[calm.flows[i].source * 25 + calm.flows[i].destination]--;
    }
    for (unsigned i = 0; i < 625; i++)
        assert_int_equal(pairs[i], 0);
    assert_true(last_ps <= 42 * NETSIM_PS_PER_US);
    /* Mean 1.5 us; the standard error of 1,000 draws is 0.027 us. */
    assert_true(sum_ps / list.count > 1.4e6 && sum_ps / list.count < 1.6e6);
    free(memory[0]);
    free(memory[1]);
}

/* 0 … jitter, both included. */
static void test_jitter_bounds(void **state)
{
    (void)state;
    void *memory;
    struct netsim_workload_config config = workload(NETSIM_ALL_TO_ALL);
    config.jitter_ps = 3;
    struct netsim_flow_list list = rounds_build(&config, 20, 1, &memory);
    assert_true(list.flows[0].start_ps == 0 && list.flows[list.count - 1].start_ps == 3);
    free(memory);
}

static void refuse(const struct netsim_workload_config *config, uint32_t hosts, const char *word,
                   const char *other)
{
    void *memory;
    struct netsim_flow_list list;
    struct netsim_graph graph = hosts_only(hosts);
    assert_int_equal(build_workload(config, &graph, 1, &list, &memory), -LH_ERANGE);
    if (strstr(lh_last_error(), word) == NULL || strstr(lh_last_error(), other) == NULL)
        fail_msg("\"%s\" has no \"%s\" or no \"%s\"", lh_last_error(), word, other);
}

static void test_limits(void **state)
{
    (void)state;
    struct netsim_workload_config config = workload(NETSIM_INCAST);
    config.senders = 16;
    refuse(&config, 16, "workload.senders 16", "1 to 15");
    config.senders = 0;
    config.receiver = 16;
    refuse(&config, 16, "workload.receiver 16", "0 to 15");
    config = workload(NETSIM_PERMUTATION);
    config.bytes = 0;
    refuse(&config, 16, "workload.bytes", "16TiB");
    config.bytes = NETSIM_FLOW_BYTES_MAX + 1;
    refuse(&config, 16, "workload.bytes", "16TiB");
    config = workload(NETSIM_PERMUTATION);
    config.rounds = 0;
    refuse(&config, 16, "workload.rounds 0", "1");
    config.rounds = NETSIM_FLOWS_MAX / 16 + 1;
    refuse(&config, 16, "workload.kind", "16777216");
    config.rounds = UINT32_MAX;
    config.kind = NETSIM_ALL_TO_ALL;
    refuse(&config, 65536, "workload.kind", "16777216");
    config.gap_ps = NETSIM_TIME_MAX;
    refuse(&config, 16, "workload.gap", "106 days");
    config.rounds = 1;
    config.jitter_ps = NETSIM_NEVER;
    refuse(&config, 16, "workload.gap", "jitter");
}

static int run_rounds(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permutations_are_derangements),
        cmocka_unit_test(test_every_derangement_is_as_likely),
        cmocka_unit_test(test_permutations_by_site),
        cmocka_unit_test(test_permutations_across_halves),
        cmocka_unit_test(test_the_seed_decides),
        cmocka_unit_test(test_incast),
        cmocka_unit_test(test_incast_by_default),
        cmocka_unit_test(test_all_to_all),
        cmocka_unit_test(test_rounds_and_gaps),
        cmocka_unit_test(test_jitter),
        cmocka_unit_test(test_jitter_bounds),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_collective() + run_rounds();
}
