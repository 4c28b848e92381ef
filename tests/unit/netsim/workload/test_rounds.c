/*
 * test_rounds.c - permutation, incast, all-to-all; rounds, gaps and jitter; the order of the list.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/workload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "support/netsim_build.h"

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

static struct netsim_flow_list build(const struct netsim_workload_config *config, uint32_t hosts,
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
        struct netsim_flow_list list = build(&config, sizes[i], 1, &memory);
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
    struct netsim_flow_list list = build(&config, 4, 5, &memory);
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
static struct netsim_flow_list build_sites(const struct netsim_workload_config *config,
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
        struct netsim_flow_list list = build_sites(&config, nodes, &memory);
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
    struct netsim_flow_list list = build(&config, 7, 1, &memory);
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
    assert_non_null(strstr(lh_last_error(), "site 1 has one host"));
}

static void test_the_seed_decides(void **state)
{
    (void)state;
    void *memory[3];
    struct netsim_workload_config config = workload(NETSIM_PERMUTATION);
    struct netsim_flow_list first = build(&config, 100, 1, &memory[0]);
    struct netsim_flow_list again = build(&config, 100, 1, &memory[1]);
    struct netsim_flow_list other = build(&config, 100, 2, &memory[2]);
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
    struct netsim_flow_list list = build(&config, 16, 1, &memory);
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
    struct netsim_flow_list list = build(&config, 16, 1, &memory);
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
    struct netsim_flow_list list = build(&config, 9, 1, &memory);
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
    struct netsim_flow_list list = build(&config, 3, 1, &memory);
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
    struct netsim_flow_list calm = build(&config, 25, 3, &memory[0]);
    config.jitter_ps = 3 * NETSIM_PS_PER_US;
    struct netsim_flow_list list = build(&config, 25, 3, &memory[1]);
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
    struct netsim_flow_list list = build(&config, 20, 1, &memory);
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

int main(void)
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
