/*
 * test_poisson.c - arrivals: how many, from whom, to whom, how large, how far apart.
 *
 * Seeds are fixed, so nothing here is left to chance. "Within N standard errors" says how likely another
 * seed would do as well: 5 fail once in 1.7 million.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/workload.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "support/netsim_build.h"
#include "support/netsim_text.h"

#define GBIT UINT64_C(1000000000)

/* 100 kB flows at 30% for 100 ms: 3,750 flows from each host of 100 Gbit/s. */
static struct netsim_workload_config poisson(enum netsim_matrix matrix)
{
    return (struct netsim_workload_config){.kind = NETSIM_POISSON,
                                           .matrix = matrix,
                                           .bytes = 100000,
                                           .load = 0.3,
                                           .duration_ps = 100 * NETSIM_PS_PER_MS};
}

struct world {
    struct netsim_graph graph;
    struct netsim_flow_list list;
    void *graph_memory;
    void *list_memory;
};

static struct world build(const struct netsim_topology_config *topology,
                          const struct netsim_workload_config *config, uint64_t seed)
{
    struct world world;
    assert_int_equal(build_topology(topology, &world.graph, &world.graph_memory), 0);
    assert_int_equal(build_workload(config, &world.graph, seed, &world.list, &world.list_memory), 0);
    return world;
}

static void destroy(struct world *world)
{
    free(world->graph_memory);
    free(world->list_memory);
}

static struct netsim_topology_config two_datacenters(void)
{
    struct netsim_topology_config topology = topology_config(NETSIM_TWO_DATACENTERS);
    topology.k = 4;
    return topology;
}

/* So many were expected, of something that arrives by a Poisson process. */
static void check_number(double number, double expected)
{
    if (fabs(number - expected) > 5 * sqrt(expected))
        fail_msg("%g, expected %g, which is %.1f standard errors off", number, expected,
                 (number - expected) / sqrt(expected));
}

static void test_uniform(void **state)
{
    (void)state;
    struct netsim_topology_config topology = two_datacenters();
    struct netsim_workload_config config = poisson(NETSIM_UNIFORM);
    struct world world = build(&topology, &config, 1);
    uint32_t sent[32] = {0};
    uint32_t received[32] = {0};
    uint32_t pairs[1024] = {0};
    check_number(world.list.count, 32 * 3750.0);
    for (uint32_t i = 0; i < world.list.count; i++) {
        const struct netsim_flow_request *flow = &world.list.flows[i];
        assert_true(flow->bytes == 100000 && flow->start_ps < config.duration_ps);
        sent[flow->source]++;
        received[flow->destination]++;
        pairs[flow->source * 32 + flow->destination]++;
    }
    for (uint32_t host = 0; host < 32; host++) {
        check_number(sent[host], 3750);
        check_number(received[host], 3750);
    }
    for (uint32_t pair = 0; pair < 1024; pair++)
        check_number(pairs[pair], pair / 32 == pair % 32 ? 0 : 3750 / 31.0);
    destroy(&world);
}

/* Gaps of a Poisson process: as much variance as the square of the mean, and of each length the right
 * share. */
static void test_gaps_are_exponential(void **state)
{
    (void)state;
    struct netsim_topology_config topology = two_datacenters();
    struct netsim_workload_config config = poisson(NETSIM_UNIFORM);
    struct world world = build(&topology, &config, 2);
    double mean_ps = (double)config.duration_ps / (32 * 3750.0);
    double squares = 0;
    uint32_t short_ones = 0;
    uint32_t long_ones = 0;
    for (uint32_t i = 1; i < world.list.count; i++) {
        double gap = (double)(world.list.flows[i].start_ps - world.list.flows[i - 1].start_ps) / mean_ps;
        squares += gap * gap;
        short_ones += gap < 0.1;
        long_ones += gap > 3;
    }
    check_number(short_ones, world.list.count * (1 - exp(-0.1)));
    check_number(long_ones, world.list.count * exp(-3.0));
    /* The variance of a square is 20. */
    assert_true(fabs(squares / world.list.count - 2) < 5 * sqrt(20.0 / world.list.count));
    destroy(&world);
}

static void test_across(void **state)
{
    (void)state;
    struct netsim_topology_config topology = two_datacenters();
    struct netsim_workload_config config = poisson(NETSIM_ACROSS);
    struct world world = build(&topology, &config, 3);
    uint32_t received[32] = {0};
    check_number(world.list.count, 16 * 3750.0);
    for (uint32_t i = 0; i < world.list.count; i++) {
        assert_true(world.list.flows[i].source < 16 && world.list.flows[i].destination >= 16);
        received[world.list.flows[i].destination]++;
    }
    for (uint32_t host = 16; host < 32; host++)
        check_number(received[host], 3750);
    destroy(&world);
}

/* One site: the first half of the hosts sends to the second, here over the bottleneck of a dumbbell. */
static void test_across_halves(void **state)
{
    (void)state;
    struct netsim_topology_config topology = topology_config(NETSIM_DUMBBELL);
    topology.hosts = 3;
    struct netsim_workload_config config = poisson(NETSIM_ACROSS);
    struct world world = build(&topology, &config, 4);
    check_number(world.list.count, 3 * 3750.0);
    for (uint32_t i = 0; i < world.list.count; i++)
        assert_true(world.list.flows[i].source < 3 && world.list.flows[i].destination >= 3);
    destroy(&world);
}

static void test_inside(void **state)
{
    (void)state;
    struct netsim_topology_config topology = two_datacenters();
    struct netsim_workload_config config = poisson(NETSIM_INSIDE);
    struct world world = build(&topology, &config, 5);
    uint32_t pairs[1024] = {0};
    check_number(world.list.count, 32 * 3750.0);
    for (uint32_t i = 0; i < world.list.count; i++)
        pairs[world.list.flows[i].source * 32 + world.list.flows[i].destination]++;
    for (uint32_t pair = 0; pair < 1024; pair++) {
        bool same_site = pair / 32 / 16 == pair % 32 / 16 && pair / 32 != pair % 32;
        check_number(pairs[pair], same_site ? 3750 / 15.0 : 0);
    }
    destroy(&world);
}

/* The load is a share of what is given, not of the hosts' cables: 30% of 400 Gbit/s by 16 hosts. */
static void test_load_base(void **state)
{
    (void)state;
    struct netsim_topology_config topology = two_datacenters();
    struct netsim_workload_config config = poisson(NETSIM_ACROSS);
    config.load_base_bps = 25 * GBIT;
    struct world world = build(&topology, &config, 6);
    double offered_bps = world.list.count * 100000 * 8.0 / 0.1;
    assert_true(fabs(offered_bps / 120e9 - 1) < 5 / sqrt(15000.0));
    destroy(&world);
}

static struct netsim_topology_config three_sites(void)
{
    struct netsim_topology_config topology = topology_config(NETSIM_DATACENTERS);
    topology.k = 2;
    topology.hosts = 2;
    topology.sites = 3;
    return topology;
}

/* Four hosts in each site. Who sends alone sends the same as among others. */
static void test_pairs_of_sites(void **state)
{
    (void)state;
    struct netsim_topology_config topology = three_sites();
    struct netsim_workload_config config = poisson(NETSIM_UNIFORM);
    config.pairs.any = true;
    config.pairs.times[0][1] = 1;
    struct world alone = build(&topology, &config, 12);
    config.pairs.times[0][2] = 0.5;
    config.pairs.times[1][2] = 2;
    config.pairs.times[2][2] = 1;
    struct world world = build(&topology, &config, 12);
    uint32_t sent[12][12] = {0};
    uint32_t same = 0;
    for (uint32_t i = 0; i < world.list.count; i++) {
        const struct netsim_flow_request *flow = &world.list.flows[i];
        sent[flow->source][flow->destination]++;
        if (flow->source / 4 != 0 || flow->destination / 4 != 1)
            continue;
        assert_memory_equal(flow, &alone.list.flows[same++], sizeof *flow);
    }
    assert_int_equal(same, alone.list.count);
    check_number(same, 4 * 3750.0);
    for (uint32_t pair = 0; pair < 144; pair++) {
        uint32_t from = pair / 12;
        uint32_t to = pair % 12;
        double times = config.pairs.times[from / 4][to / 4];
        double receivers = from / 4 == to / 4 ? 3 : 4;
        check_number(sent[from][to], from == to ? 0 : times * 3750 / receivers);
    }
    destroy(&alone);
    destroy(&world);
}

/* In a file hosts may have cables of different rates: each offers its share of its own. */
static void test_hosts_of_different_rates(void **state)
{
    (void)state;
    struct netsim_topology_config topology = topology_config(NETSIM_TOPOLOGY_FILE);
    topology.file = netsim_text_of("switch s\nhost fast\nhost slow\nhost middle\n"
                                   "link fast s rate=400Gbit\nlink s middle\nlink slow s rate=25Gbit\n");
    struct netsim_workload_config config = poisson(NETSIM_UNIFORM);
    struct world world = build(&topology, &config, 7);
    uint32_t sent[3] = {0};
    for (uint32_t i = 0; i < world.list.count; i++)
        sent[world.list.flows[i].source]++;
    check_number(sent[0], 4 * 3750);
    check_number(sent[1], 3750 / 4.0);
    check_number(sent[2], 3750);
    destroy(&world);
}

/* Hosts of both sites in turns. */
static void test_sites_need_not_be_in_order(void **state)
{
    (void)state;
    struct netsim_topology_config topology = topology_config(NETSIM_TOPOLOGY_FILE);
    topology.file = netsim_text_of("switch s\nhost a\nhost b site=3\nhost c\nhost d site=3\n"
                                   "link a s\nlink b s\nlink c s\nlink d s\n");
    struct netsim_workload_config config = poisson(NETSIM_INSIDE);
    struct world world = build(&topology, &config, 8);
    check_number(world.list.count, 4 * 3750.0);
    for (uint32_t i = 0; i < world.list.count; i++)
        assert_int_equal(world.list.flows[i].destination, world.list.flows[i].source ^ 2);
    destroy(&world);
    config.matrix = NETSIM_ACROSS;
    world = build(&topology, &config, 9);
    check_number(world.list.count, 2 * 3750.0);
    for (uint32_t i = 0; i < world.list.count; i++)
        assert_true(world.list.flows[i].source % 2 == 0 && world.list.flows[i].destination % 2 == 1);
    destroy(&world);
}

/* Sizes from a distribution: the bytes offered are the load, and the mean decides how many flows there are.
 * */
static void test_sizes(void **state)
{
    (void)state;
    struct netsim_topology_config topology = two_datacenters();
    struct netsim_workload_config config = poisson(NETSIM_UNIFORM);
    config.sizes = netsim_text_of("0 0\n10kB 50\n100kB 100\n");
    struct world world = build(&topology, &config, 10);
    double expected = 0.3 * 32 * 100e9 * 0.1 / 8 / 30000;
    double sum = 0;
    check_number(world.list.count, expected);
    for (uint32_t i = 0; i < world.list.count; i++)
        sum += (double)world.list.flows[i].bytes;
    /* The mean of a square: half of 10k^2 / 3, half of (10k^2 + 10k 100k + 100k^2) / 3. */
    double square = (1e8 + 1e8 + 1e9 + 1e10) / 6;
    assert_true(fabs(sum - expected * 30000) < 5 * sqrt(expected * square));
    destroy(&world);
}

/* Each component draws by itself: other sizes change neither who nor, at the same mean, when. */
static void test_components_do_not_shift_each_other(void **state)
{
    (void)state;
    struct netsim_topology_config topology = two_datacenters();
    struct netsim_workload_config config = poisson(NETSIM_UNIFORM);
    struct world plain = build(&topology, &config, 11);
    config.sizes = netsim_text_of("50kB 0\n150kB 1\n");
    struct world sized = build(&topology, &config, 11);
    config.matrix = NETSIM_INSIDE;
    struct world inside = build(&topology, &config, 11);
    assert_int_equal(plain.list.count, sized.list.count);
    assert_int_equal(plain.list.count, inside.list.count);
    for (uint32_t i = 0; i < plain.list.count; i++) {
        assert_true(plain.list.flows[i].start_ps == sized.list.flows[i].start_ps);
        assert_int_equal(plain.list.flows[i].source, sized.list.flows[i].source);
        assert_int_equal(plain.list.flows[i].destination, sized.list.flows[i].destination);
        assert_int_equal(inside.list.flows[i].source, sized.list.flows[i].source);
        assert_true(inside.list.flows[i].bytes == sized.list.flows[i].bytes);
    }
    destroy(&plain);
    destroy(&sized);
    destroy(&inside);
}

static void test_no_flow_at_all(void **state)
{
    (void)state;
    struct netsim_topology_config topology = two_datacenters();
    struct netsim_workload_config config = poisson(NETSIM_UNIFORM);
    config.duration_ps = 1;
    struct world world = build(&topology, &config, 1);
    assert_int_equal(world.list.count, 0);
    destroy(&world);
}

static void refuse(const struct netsim_topology_config *topology,
                   const struct netsim_workload_config *config, int code, const char *word,
                   const char *other)
{
    struct world world;
    assert_int_equal(build_topology(topology, &world.graph, &world.graph_memory), 0);
    assert_int_equal(build_workload(config, &world.graph, 1, &world.list, &world.list_memory), code);
    if (strstr(lh_last_error(), word) == NULL || strstr(lh_last_error(), other) == NULL)
        fail_msg("\"%s\" has no \"%s\" or no \"%s\"", lh_last_error(), word, other);
    free(world.graph_memory);
}

static void test_limits(void **state)
{
    (void)state;
    struct netsim_topology_config topology = two_datacenters();
    const struct netsim_workload_config good = poisson(NETSIM_UNIFORM);
    static const double loads[] = {0, -1, 10.5, INFINITY, NAN};
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        struct netsim_workload_config config = good;
        config.load = loads[i];
        refuse(&topology, &config, -LH_ERANGE, "workload.load ", "at most 10");
    }
    struct netsim_workload_config config = good;
    config.load_base_bps = NETSIM_RATE_MAX + 1;
    refuse(&topology, &config, -LH_ERANGE, "workload.load_base ", "100Tbit");
    config = good;
    config.duration_ps = 0;
    refuse(&topology, &config, -LH_ERANGE, "workload.duration 0", "106 days");
    config.duration_ps = NETSIM_NEVER;
    refuse(&topology, &config, -LH_ERANGE, "workload.duration too long", "106 days");
    config.duration_ps = 15 * NETSIM_PS_PER_S;
    refuse(&topology, &config, -LH_ERANGE, "workload.kind: 1.8e+07 flows", "16777216");
    config.duration_ps = NETSIM_TIME_MAX;
    refuse(&topology, &config, -LH_ERANGE, "workload.kind", "16777216");
    config = good;
    config.bytes = 0;
    refuse(&topology, &config, -LH_ERANGE, "workload.bytes", "16TiB");
    config = good;
    config.sizes = netsim_text_of("0 0\n1kB 0.9\n");
    refuse(&topology, &config, -LH_EINVAL, "workload.sizes:2", "must be 1");
}

static void test_pairs_need_hosts(void **state)
{
    (void)state;
    struct netsim_topology_config topology = two_datacenters();
    struct netsim_workload_config config = poisson(NETSIM_UNIFORM);
    config.pairs.any = true;
    config.pairs.times[1][2] = 1;
    refuse(&topology, &config, -LH_EINVAL, "workload.pairs has b>c", "site c has 0");
    topology = topology_config(NETSIM_TWO_HOSTS);
    config.pairs.times[1][2] = 0;
    config.pairs.times[0][0] = 1;
    struct world world = build(&topology, &config, 1);
    destroy(&world);
    topology = topology_config(NETSIM_TOPOLOGY_FILE);
    topology.file = netsim_text_of("host a\nhost b site=1\nlink a b\n");
    refuse(&topology, &config, -LH_EINVAL, "workload.pairs has a>a", "each needs 2");
}

static void test_matrix_needs_hosts(void **state)
{
    (void)state;
    struct netsim_topology_config topology = topology_config(NETSIM_TOPOLOGY_FILE);
    struct netsim_workload_config config = poisson(NETSIM_INSIDE);
    topology.file = netsim_text_of("host a\nhost b site=1\nlink a b\n");
    refuse(&topology, &config, -LH_EINVAL, "workload.matrix: site 0 has one host", "uniform");
    config.matrix = NETSIM_ACROSS;
    topology.file = netsim_text_of("host a site=1\nhost b site=1\nlink a b\n");
    refuse(&topology, &config, -LH_EINVAL, "workload.matrix: across", "uniform");
    topology.file = netsim_text_of("host a\nhost b\nswitch s site=1\nlink a s\nlink b s\n");
    refuse(&topology, &config, -LH_EINVAL, "workload.matrix: across", "uniform");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_gaps_are_exponential),
        cmocka_unit_test(test_across),
        cmocka_unit_test(test_across_halves),
        cmocka_unit_test(test_inside),
        cmocka_unit_test(test_load_base),
        cmocka_unit_test(test_pairs_of_sites),
        cmocka_unit_test(test_hosts_of_different_rates),
        cmocka_unit_test(test_sites_need_not_be_in_order),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_components_do_not_shift_each_other),
        cmocka_unit_test(test_no_flow_at_all),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_pairs_need_hosts),
        cmocka_unit_test(test_matrix_needs_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
