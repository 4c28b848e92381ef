/*
 * test_poisson_workload.c - distributions of sizes: their text, their mean, what is drawn.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "netsim/workload/workload.h"
#include "support/netsim_build.h"
#include "support/netsim_text.h"

/* ---- test cdf -------------------------------------------------------------------------------------- */

/* Both passes, which agree. *memory is to be freed. */
static int read_cdf(const struct netsim_text *text, struct netsim_cdf *cdf, void **memory)
{
    struct netsim_arena counting = {0};
    struct netsim_cdf counted;
    *memory = NULL;
    int rc = netsim_cdf_read(&counted, "workload.sizes", text, &counting);
    if (rc != 0)
        return rc;
    assert_null(counted.bytes);
    struct netsim_arena arena = {.capacity_bytes = counting.used_bytes};
    arena.base = *memory = aligned_alloc(64, counting.used_bytes);
    assert_non_null(arena.base);
    assert_int_equal(netsim_cdf_read(cdf, "workload.sizes", text, &arena), 0);
    assert_int_equal(arena.used_bytes, counting.used_bytes);
    assert_int_equal(cdf->points, counted.points);
    assert_true(cdf->mean_bytes == counted.mean_bytes);
    return 0;
}

static struct netsim_cdf good(const char *words, void **memory)
{
    struct netsim_cdf cdf;
    struct netsim_text text = netsim_text_of(words);
    assert_int_equal(read_cdf(&text, &cdf, memory), 0);
    return cdf;
}

static void refuse(const char *words, int code, const char *word, const char *other)
{
    void *memory;
    struct netsim_cdf cdf;
    struct netsim_text text = netsim_text_of(words);
    assert_int_equal(read_cdf(&text, &cdf, &memory), code);
    if (strstr(lh_last_error(), word) == NULL || strstr(lh_last_error(), other) == NULL)
        fail_msg("\"%s\" has no \"%s\" or no \"%s\"", lh_last_error(), word, other);
}

/* A file of netsim/scenarios/workloads. */
static void read_scenario(const char *name, struct netsim_cdf *cdf, void **memory)
{
    static char words[16384];
    char path[1024];
    const char *root = getenv("LH_SOURCE_DIR");
    if (root == NULL)
        skip();
    snprintf(path, sizeof path, "%s/netsim/scenarios/workloads/%s", root, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    struct netsim_text text = {.data = words, .bytes = fread(words, 1, sizeof words, file)};
    fclose(file);
    assert_true(text.bytes > 0 && text.bytes < sizeof words);
    assert_int_equal(read_cdf(&text, cdf, memory), 0);
}

static void test_published_means(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double mean_bytes;
        uint32_t points;
        double median_bytes;
    } files[] = {{"websearch.cdf", 1711250, 12, 50000 + 30000 * 10.0 / 13},
                 {"fb_hadoop.cdf", 120420.75, 20, 700}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        void *memory;
        struct netsim_cdf cdf = {0};
        read_scenario(files[i].name, &cdf, &memory);
        assert_int_equal(cdf.points, files[i].points);
        /* Sizes below half a byte become 1: 7.5e-6 and 5e-5 bytes in the mean. */
        assert_true(fabs(cdf.mean_bytes - files[i].mean_bytes) < 1e-4);
        assert_true(fabs(netsim_cdf_quantile(&cdf, 0.5) - files[i].median_bytes) < 1e-6);
        free(memory);
    }
}

static void test_quantiles_are_linear_between_points(void **state)
{
    (void)state;
    void *memory;
    struct netsim_cdf cdf = good("0 0\n1000 0.25\n2000 0.25\n10kB 1 # all\n", &memory);
    assert_true(netsim_cdf_quantile(&cdf, 0) == 0);
    assert_true(netsim_cdf_quantile(&cdf, 0.125) == 500);
    assert_true(netsim_cdf_quantile(&cdf, 0.25) == 2000);
    assert_true(netsim_cdf_quantile(&cdf, 0.625) == 6000);
    assert_true(netsim_cdf_quantile(&cdf, 1 - 0x1p-53) <= 10000);
    assert_true(netsim_cdf_quantile(&cdf, 1 - 0x1p-53) > 9999.999);
    free(memory);
}

/* Half of all flows have 100 bytes, a quarter 300. */
static void test_steps_are_sizes_by_themselves(void **state)
{
    (void)state;
    void *memory;
    struct netsim_cdf cdf = good("100 0.5\n300 0.5\n300 0.75\n500 1\n", &memory);
    assert_true(cdf.mean_bytes == 0.5 * 100 + 0.25 * 300 + 0.25 * 400);
    assert_true(netsim_cdf_quantile(&cdf, 0) == 100 && netsim_cdf_quantile(&cdf, 0.499) == 100);
    assert_true(netsim_cdf_quantile(&cdf, 0.5) == 300 && netsim_cdf_quantile(&cdf, 0.749) == 300);
    assert_true(netsim_cdf_quantile(&cdf, 0.875) == 400);
    free(memory);
}

static void test_percent(void **state)
{
    (void)state;
    void *memory[2];
    struct netsim_cdf shares = good("0 0\n1kB 0.15\n2kB 0.9\n3kB 1", &memory[0]);
    struct netsim_cdf percent = good("0 0\n1kB 15\n2kB 90\n3kB 100", &memory[1]);
    assert_int_equal(shares.points, percent.points);
    for (uint32_t i = 0; i < shares.points; i++)
        assert_true(shares.bytes[i] == percent.bytes[i] && shares.cumulative[i] == percent.cumulative[i]);
    assert_true(fabs(shares.mean_bytes - percent.mean_bytes) < 1e-9);
    free(memory[0]);
    free(memory[1]);
}

static void test_one_size(void **state)
{
    (void)state;
    void *memory;
    struct lh_prng prng;
    struct netsim_cdf cdf = good("64KiB 1", &memory);
    lh_prng_seed(&prng, 1);
    assert_true(cdf.mean_bytes == 65536);
    for (int i = 0; i < 100; i++)
        assert_true(netsim_cdf_sample(&cdf, &prng) == 65536);
    free(memory);
}

/* Shares of the draws at and below each point, and their mean, are the distribution's: within five standard
 * errors. */
static void check_samples(const struct netsim_cdf *cdf, uint64_t seed)
{
    enum { DRAWS = 200000 };
    struct lh_prng prng;
    uint32_t at_most[32] = {0};
    double sum = 0;
    double squares = 0;
    assert_true(cdf->points <= 32);
    lh_prng_seed(&prng, seed);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t bytes = netsim_cdf_sample(cdf, &prng);
        assert_true(bytes >= 1 && (double)bytes <= cdf->bytes[cdf->points - 1]);
        sum += (double)bytes;
        squares += (double)bytes * (double)bytes;
        for (uint32_t point = 0; point < cdf->points; point++)
            at_most[point] += (double)bytes <= cdf->bytes[point];
    }
    double mean = sum / DRAWS;
    double error = sqrt((squares / DRAWS - mean * mean) / DRAWS);
    assert_true(fabs(mean - cdf->mean_bytes) <= 5 * error);
    for (uint32_t point = 0; point < cdf->points; point++) {
        double share = cdf->cumulative[point];
        if (cdf->bytes[point] < 1)
            continue;
        /* Rounding moves what is within half a byte of the point: too little to be seen. */
        assert_true(fabs(at_most[point] / (double)DRAWS - share) <=
                    5 * sqrt(share * (1 - share) / DRAWS) + 1e-3);
    }
}

static void test_draws_follow_the_distribution(void **state)
{
    (void)state;
    static const char *const names[] = {"websearch.cdf", "fb_hadoop.cdf"};
    for (size_t i = 0; i < 2; i++) {
        void *memory;
        struct netsim_cdf cdf = {0};
        read_scenario(names[i], &cdf, &memory);
        check_samples(&cdf, 1 + i);
        free(memory);
    }
}

/* Where rounding and the smallest flow count most: sizes 0 … 3 bytes, of which 0 becomes 1. By hand: 1 for
 * the first 1.5 of 3, 2 for the next 1, 3 for the last half. */
static void test_mean_is_that_of_whole_bytes(void **state)
{
    (void)state;
    void *memory;
    struct netsim_cdf cdf = good("0 0\n3 1\n", &memory);
    assert_true(fabs(cdf.mean_bytes - (1.5 * 1 + 1 * 2 + 0.5 * 3) / 3) < 1e-12);
    check_samples(&cdf, 1);
    free(memory);
    cdf = good("0 0.5\n0 0.75\n10 1\n", &memory);
    assert_true(fabs(cdf.mean_bytes - (0.75 + 0.25 * 5.05)) < 1e-12);
    check_samples(&cdf, 1);
    free(memory);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    refuse("", -LH_EINVAL, "workload.sizes has no points", "10kB 0.15");
    refuse("# only words\n", -LH_EINVAL, "no points", "10kB");
    refuse("0 0\n100\n", -LH_EINVAL, ":2: 1 words", "10kB 0.15");
    refuse("0 0 0\n", -LH_EINVAL, ":1: 3 words", "10kB 0.15");
    refuse("0 0\n1XB 1\n", -LH_EINVAL, ":2: ", "1XB");
    refuse("0 0\n17TiB 1\n", -LH_ERANGE, ":2: size 17TiB", "16TiB");
    /* Shares that end in percent: nobody knows what they mean. */
    refuse("1 0.5\n2 1.0\n3 100\n", -LH_EINVAL, ":3", "0 to 1");
    refuse("0 0\n1kB x\n", -LH_EINVAL, ":2: invalid share \"x\"", "percent");
    refuse("0 0\n1kB 50%\n", -LH_EINVAL, ":2: invalid share \"50%\"", "percent");
    refuse("0 -1\n1kB 1\n", -LH_EINVAL, ":1: invalid share \"-1\"", "percent");
    refuse("0 0\n1kB 100.1\n", -LH_ERANGE, ":2: share 100.1", "percent");
    refuse("0 0\n2kB 0.5\n1kB 1\n", -LH_EINVAL, ":3: size 1kB", "sort");
    refuse("0 0\n1kB 0.5\n2kB 0.4\n", -LH_EINVAL, ":3: share 0.4", "cumulative");
    refuse("0 0\n1kB 0.5\n\n\n", -LH_EINVAL, ":2: the last share must be 1", "100");
    refuse("0 0\n1kB 99\n", -LH_EINVAL, "the last share must be 1", "100");
    refuse("0 0.5\n0 1\n", -LH_EINVAL, "empty", "at least 1");
    refuse("0 0\n\x80 1\n", -LH_EINVAL, ":2", "not text");
}

static void test_too_many_points(void **state)
{
    (void)state;
    static const char point[6] = {'1', ' ', '0', '.', '5', '\n'};
    static char words[6 * (NETSIM_CDF_POINTS_MAX + 1) + 1];
    for (uint32_t i = 0; i <= NETSIM_CDF_POINTS_MAX; i++)
        memcpy(words + (size_t)6 * i, point, sizeof point);
    refuse(words, -LH_ERANGE, "point 65537", "at most 65536");
}

static int run_cdf(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_means),
        cmocka_unit_test(test_quantiles_are_linear_between_points),
        cmocka_unit_test(test_steps_are_sizes_by_themselves),
        cmocka_unit_test(test_percent),
        cmocka_unit_test(test_one_size),
        cmocka_unit_test(test_draws_follow_the_distribution),
        cmocka_unit_test(test_mean_is_that_of_whole_bytes),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_too_many_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test poisson ---------------------------------------------------------------------------------- */

/*
 * Arrivals: how many, from whom, to whom, how large, how far apart.
 *
 * Seeds are fixed, so nothing here is left to chance. "Within N standard errors" says how likely another
 * seed would do as well: 5 fail once in 1.7 million.
 */

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

static void poisson_refuse(const struct netsim_topology_config *topology,
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
        poisson_refuse(&topology, &config, -LH_ERANGE, "workload.load ", "at most 10");
    }
    struct netsim_workload_config config = good;
    config.load_base_bps = NETSIM_RATE_MAX + 1;
    poisson_refuse(&topology, &config, -LH_ERANGE, "workload.load_base ", "100Tbit");
    config = good;
    config.duration_ps = 0;
    poisson_refuse(&topology, &config, -LH_ERANGE, "workload.duration 0", "106 days");
    config.duration_ps = NETSIM_NEVER;
    poisson_refuse(&topology, &config, -LH_ERANGE, "workload.duration too long", "106 days");
    config.duration_ps = 15 * NETSIM_PS_PER_S;
    poisson_refuse(&topology, &config, -LH_ERANGE, "workload.kind: 1.8e+07 flows", "16777216");
    config.duration_ps = NETSIM_TIME_MAX;
    poisson_refuse(&topology, &config, -LH_ERANGE, "workload.kind", "16777216");
    config = good;
    config.bytes = 0;
    poisson_refuse(&topology, &config, -LH_ERANGE, "workload.bytes", "16TiB");
    config = good;
    config.sizes = netsim_text_of("0 0\n1kB 0.9\n");
    poisson_refuse(&topology, &config, -LH_EINVAL, "workload.sizes:2", "must be 1");
}

static void test_pairs_need_hosts(void **state)
{
    (void)state;
    struct netsim_topology_config topology = two_datacenters();
    struct netsim_workload_config config = poisson(NETSIM_UNIFORM);
    config.pairs.any = true;
    config.pairs.times[1][2] = 1;
    poisson_refuse(&topology, &config, -LH_EINVAL, "workload.pairs has b>c", "site c has 0");
    topology = topology_config(NETSIM_TWO_HOSTS);
    config.pairs.times[1][2] = 0;
    config.pairs.times[0][0] = 1;
    struct world world = build(&topology, &config, 1);
    destroy(&world);
    topology = topology_config(NETSIM_TOPOLOGY_FILE);
    topology.file = netsim_text_of("host a\nhost b site=1\nlink a b\n");
    poisson_refuse(&topology, &config, -LH_EINVAL, "workload.pairs has a>a", "each needs 2");
}

static void test_matrix_needs_hosts(void **state)
{
    (void)state;
    struct netsim_topology_config topology = topology_config(NETSIM_TOPOLOGY_FILE);
    struct netsim_workload_config config = poisson(NETSIM_INSIDE);
    topology.file = netsim_text_of("host a\nhost b site=1\nlink a b\n");
    poisson_refuse(&topology, &config, -LH_EINVAL, "workload.matrix: inside: site 0 has only one host",
                   "uniform");
    config.matrix = NETSIM_ACROSS;
    topology.file = netsim_text_of("host a site=1\nhost b site=1\nlink a b\n");
    poisson_refuse(&topology, &config, -LH_EINVAL, "workload.matrix: across", "uniform");
    topology.file = netsim_text_of("host a\nhost b\nswitch s site=1\nlink a s\nlink b s\n");
    poisson_refuse(&topology, &config, -LH_EINVAL, "workload.matrix: across", "uniform");
}

static int run_poisson(void)
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

int main(void)
{
    return run_cdf() + run_poisson();
}
