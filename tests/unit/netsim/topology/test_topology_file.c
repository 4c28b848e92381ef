/*
 * test_topology_file.c - topologies from a text: what a line may say, what fits together, the routes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/topology/topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "netsim/engine/network.h"
#include "support/netsim_build.h"
#include "support/netsim_text.h"
#include "support/netsim_walk.h"

#define GBIT UINT64_C(1000000000)

static int read_file(const char *words, struct netsim_graph *graph, void **memory)
{
    struct netsim_topology_config config = topology_config(NETSIM_TOPOLOGY_FILE);
    config.file = netsim_text_of(words);
    return build_topology(&config, graph, memory);
}

static struct netsim_graph good(const char *words, void **memory)
{
    struct netsim_graph graph;
    if (read_file(words, &graph, memory) != 0)
        fail_msg("%s", lh_last_error());
    return graph;
}

static void test_nodes(void **state)
{
    (void)state;
    void *memory;
    struct netsim_graph graph = good("# in any order\n"
                                     "link a core.1\n"
                                     "switch core.1 tier=core site=2\n"
                                     "host b site=1\n"
                                     "switch x-9 site=0 tier=aggregation # and so on\n"
                                     "host a\n"
                                     "switch y_8 tier=dci\n"
                                     "link x-9 core.1\nlink x-9 y_8\nlink y_8 b\n"
                                     "switch z\nlink z y_8\n",
                                     &memory);
    static const struct {
        const char *name;
        enum netsim_tier tier;
        unsigned site;
        unsigned ports;
    } expected[] = {{"b", NETSIM_TIER_HOST, 1, 1},      {"a", NETSIM_TIER_HOST, 0, 1},
                    {"core.1", NETSIM_TIER_CORE, 2, 2}, {"x-9", NETSIM_TIER_AGGREGATION, 0, 2},
                    {"y_8", NETSIM_TIER_DCI, 0, 3},     {"z", NETSIM_TIER_TOR, 0, 1}};
    assert_int_equal(graph.hosts, 2);
    assert_int_equal(graph.nodes_count, 6);
    assert_int_equal(graph.cables_count, 5);
    assert_int_equal(graph.sites, 3);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(graph.nodes[i].name, expected[i].name);
        assert_int_equal(graph.nodes[i].tier, expected[i].tier);
        assert_int_equal(graph.nodes[i].site, expected[i].site);
        assert_int_equal(graph.nodes[i].ports, expected[i].ports);
    }
    free(memory);
}

static void test_links(void **state)
{
    (void)state;
    void *memory;
    struct netsim_graph graph = good("host a\nhost b\nswitch s\nswitch t\n"
                                     "link a s\n"
                                     "link s t rate=400Gbit delay=3ms loss=1e-4 burst=8 seed=5\n"
                                     "link t s rtt=2us,corrupt=1e-5\n"
                                     "link s t delay=0 jitter=1us\n"
                                     "link t b rate=25Gbit\n",
                                     &memory);
    static const uint64_t rates[] = {100, 400, 100, 100, 25};
    static const netsim_time delays_us[] = {1, 3000, 1, 0, 1};
    static const uint32_t faults[] = {NETSIM_NO_FAULTS, 0, 1, 2, NETSIM_NO_FAULTS};
    assert_int_equal(graph.cables_count, 5);
    assert_int_equal(graph.faults_count, 3);
    for (size_t i = 0; i < 5; i++) {
        assert_true(graph.cables[i].rate_bps == rates[i] * GBIT);
        assert_true(graph.cables[i].delay_ps == delays_us[i] * NETSIM_PS_PER_US);
        assert_int_equal(graph.cables[i].faults, faults[i]);
    }
    assert_true(graph.faults[0].loss == 1e-4 && graph.faults[0].burst_packets == 8);
    assert_true(graph.faults[0].seed == 5 && graph.faults[1].seed == 1);
    assert_true(graph.faults[1].corrupt == 1e-5 && graph.faults[2].jitter_ns == 1000);
    for (size_t i = 0; i < 3; i++)
        assert_true(graph.faults[i].rate_bps == 0 && graph.faults[i].delay_ns == 0);
    /* Three cables side by side are alternatives. */
    assert_int_equal(netsim_route_port_count(&graph.routes[0], 1), 3);
    assert_int_equal(netsim_route_port_at(&graph.routes[0], 1, 0), 1);
    assert_int_equal(netsim_route_port_at(&graph.routes[0], 1, 2), 3);
    free(memory);
}

static void test_two_hosts_without_a_switch(void **state)
{
    (void)state;
    void *memory;
    struct netsim_graph graph = good("host a\nhost b\nlink b a\n", &memory);
    assert_int_equal(graph.nodes_count, 2);
    assert_true(graph.cables[0].ends[0] == 1 && graph.cables[0].ends[1] == 0);
    free(memory);
}

/* A square has two shortest paths to the far corner, and one to each near one. */
static void test_shortest_paths(void **state)
{
    (void)state;
    void *memory;
    struct netsim_graph graph = good("host h0\nhost h1\nhost h2\nhost h3\n"
                                     "switch s0\nswitch s1\nswitch s2\nswitch s3\n"
                                     "link h0 s0\nlink h1 s1\nlink h2 s2\nlink h3 s3\n"
                                     "link s0 s1\nlink s1 s2\nlink s2 s3\nlink s3 s0\n",
                                     &memory);
    struct walk walk;
    walk_init(&walk, &graph);
    for (uint32_t to = 0; to < 4; to++) {
        walk_to(&walk, to);
        for (uint32_t from = 0; from < 4; from++) {
            unsigned apart = (4 + to - from) % 4;
            assert_int_equal(netsim_route_port_count(&graph.routes[from], to), apart == 2 ? 2 : 1);
            if (from != to)
                assert_int_equal(walk_length(&walk, from), apart == 2 ? 4 : 3);
        }
    }
    walk_free(&walk);
    free(memory);
}

/* What is as far is no alternative. */
static void test_the_long_way_round_a_triangle_is_none(void **state)
{
    (void)state;
    void *memory;
    struct netsim_graph graph = good("host h0\nhost h1\nhost h2\nswitch s0\nswitch s1\nswitch s2\n"
                                     "link h0 s0\nlink h1 s1\nlink h2 s2\n"
                                     "link s0 s1\nlink s1 s2\nlink s2 s0\n",
                                     &memory);
    for (uint32_t from = 0; from < 3; from++) {
        for (uint32_t to = 0; to < 3; to++)
            assert_int_equal(netsim_route_port_count(&graph.routes[from], to), 1);
    }
    assert_int_equal(netsim_route_port_at(&graph.routes[0], 1, 0), 1);
    assert_int_equal(netsim_route_port_at(&graph.routes[0], 2, 0), 2);
    free(memory);
}

/* Writes a built-in graph as a file. */
static char *write_file(const struct netsim_graph *graph)
{
    size_t room = 64 * ((size_t)graph->nodes_count + graph->cables_count) + 1;
    size_t length = 0;
    char *words = malloc(room);
    assert_non_null(words);
    for (uint32_t i = 0; i < graph->nodes_count; i++)
        length += (size_t)snprintf(words + length, room - length, "%s %s\n",
                                   i < graph->hosts ? "host" : "switch", graph->nodes[i].name);
    for (uint32_t i = 0; i < graph->cables_count; i++)
        length += (size_t)snprintf(words + length, room - length, "link %s %s\n",
                                   graph->nodes[graph->cables[i].ends[0]].name,
                                   graph->nodes[graph->cables[i].ends[1]].name);
    assert_true(length < room);
    return words;
}

/* Routes found by search are those in closed form: at all switches, for all hosts that are below or that
 * packets for them pass. (A closed form sends what is not below up, from where no shortest path comes.) */
static void compare_routes(struct netsim_topology_config config)
{
    void *memory[2];
    struct netsim_graph closed;
    struct netsim_graph table;
    assert_int_equal(build_topology(&config, &closed, &memory[0]), 0);
    char *words = write_file(&closed);
    assert_int_equal(read_file(words, &table, &memory[1]), 0);
    free(words);
    assert_int_equal(closed.nodes_count, table.nodes_count);
    for (uint32_t node = 0; node < closed.nodes_count; node++)
        assert_string_equal(closed.nodes[node].name, table.nodes[node].name);
    for (uint32_t i = 0; i < closed.nodes_count - closed.hosts; i++) {
        for (uint32_t host = 0; host < closed.hosts; host++) {
            uint32_t count = netsim_route_port_count(&closed.routes[i], host);
            if (count == 0)
                continue;
            assert_int_equal(netsim_route_port_count(&table.routes[i], host), count);
            for (uint32_t n = 0; n < count; n++)
                assert_int_equal(netsim_route_port_at(&table.routes[i], host, n),
                                 netsim_route_port_at(&closed.routes[i], host, n));
        }
    }
    free(memory[0]);
    free(memory[1]);
}

static void test_tables_agree_with_closed_forms(void **state)
{
    (void)state;
    struct netsim_topology_config config = topology_config(NETSIM_DUMBBELL);
    config.hosts = 4;
    config.leaves = 5;
    config.spines = 3;
    compare_routes(config);
    config.kind = NETSIM_LEAF_SPINE;
    compare_routes(config);
    config.kind = NETSIM_FAT_TREE;
    config.k = 8;
    compare_routes(config);
    config.kind = NETSIM_TWO_DATACENTERS;
    config.k = 4;
    compare_routes(config);
}

static void refuse(const char *words, int code, const char *word, const char *other)
{
    void *memory;
    struct netsim_graph graph;
    assert_int_equal(read_file(words, &graph, &memory), code);
    if (strstr(lh_last_error(), word) == NULL || strstr(lh_last_error(), other) == NULL)
        fail_msg("\"%s\" has no \"%s\" or no \"%s\"", lh_last_error(), word, other);
}

static void test_lines_that_are_refused(void **state)
{
    (void)state;
    refuse("hosts a\n", -LH_EINVAL, "topology.file:1: unknown statement \"hosts\"", "host, switch or link");
    refuse("host a\n\nhost\n", -LH_EINVAL, ":3: missing node name", "host NAME");
    refuse("host a!\n", -LH_EINVAL, "invalid name \"a!\"", "letters");
    refuse("host a=b\n", -LH_EINVAL, "invalid name \"a=b\"", "letters");
    refuse("host a12345678901234567890123456789012\n", -LH_EINVAL, "too long", "31 characters");
    refuse("host a tier=core\n", -LH_EINVAL, "\"tier=core\" does not belong there", "a host has site=N");
    refuse("switch a tier=tor tier=core\n", -LH_EINVAL, "\"tier=core\" does not",
           "tier=TIER and site=N, once");
    refuse("switch a site=1 site=1\n", -LH_EINVAL, "\"site=1\" does not belong there", "once");
    refuse("switch a b\n", -LH_EINVAL, "\"b\" does not belong there", "a switch has");
    refuse("switch a tier=spine\n", -LH_EINVAL, "tier \"spine\"", "tor, aggregation, core, dci or relay");
    refuse("switch a tier=host\n", -LH_EINVAL, "tier \"host\"", "tor");
    refuse("switch a site=256\n", -LH_ERANGE, "site 256", "0 to 255");
    refuse("switch a site=x\n", -LH_EINVAL, "site \"x\"", "0 to 255");
    refuse("link\n", -LH_EINVAL, "missing node (write", "link NAME NAME");
    refuse("link a\n", -LH_EINVAL, "missing node (write", "link NAME NAME");
    refuse("link a b c\n", -LH_EINVAL, ":1: c: unknown key", "key=value");
    refuse("link a b, rate=1Gbit\n", -LH_EINVAL, "invalid name \"b,\"", "letters");
    refuse("link a b rate=1GB\n", -LH_EINVAL, ":1: rate=1GB", "Gbit");
    refuse("link a b rate=1kbit\n", -LH_ERANGE, "rate=1000bit", "1Mbit to 100Tbit");
    refuse("link a b rate=101Tbit\n", -LH_ERANGE, "rate=101000000000000bit", "1Mbit to 100Tbit");
    refuse("link a b rate=1Gbit rate=2Gbit\n", -LH_EINVAL, "rate=", "twice");
    refuse("link a b delay=2d\n", -LH_EINVAL, "delay=2d", "invalid time");
    refuse("link a b queue=1MB\n", -LH_EINVAL, "queue= and drop= belong to switches", "switch.buffer");
    refuse("link a b loss=0.1 drop=tail\n", -LH_EINVAL, "queue= and drop=", "switch.buffer");
    refuse("link a b loss=0.1,drop=tail\n", -LH_EINVAL, "queue= and drop=", "switch.buffer");
    refuse("host a\nhost \xff\n", -LH_EINVAL, ":2", "0xff");
}

static void test_graphs_that_are_refused(void **state)
{
    (void)state;
    refuse("", -LH_ERANGE, "topology.file: 0 hosts", "add hosts");
    refuse("host a\nswitch s\nlink a s\n", -LH_ERANGE, "1 hosts", "add hosts");
    refuse("host a\nhost b\nhost a\n", -LH_EINVAL, ":3: node \"a\" is already defined in line 1", "rename");
    refuse("host a\nhost b\n\nswitch b\n", -LH_EINVAL, ":4: node \"b\" is already defined in line 2",
           "rename");
    refuse("host a\nhost b\nlink a s\n", -LH_EINVAL, ":3: unknown node \"s\"", "switch s");
    refuse("host a\nhost b\nlink t a\n", -LH_EINVAL, ":3: unknown node \"t\"", "host t");
    refuse("host a\nhost b\nlink a a\n", -LH_EINVAL, ":3: link from a to itself", "two nodes");
    refuse("host a\nhost b\nlink a b\nlink a b\n", -LH_EINVAL, ":4: host a has more than one link",
           "switch");
    refuse("host a\nhost b\nswitch s\nlink a s\n", -LH_EINVAL, ":2: there is no path between b and a",
           "add a link");
    refuse("host a\nhost b\nhost c\nhost d\nlink a b\nlink c d\n", -LH_EINVAL, ":3: there is no path",
           "add a link");
    refuse("host a\nhost b\nlink a b\nswitch alone\n", -LH_EINVAL, "between alone and a", "add a link");
    refuse("host a\nhost b\n", -LH_EINVAL, "between b and a", "add a link");
}

/* A switch with one port too many. */
static void test_too_many_ports(void **state)
{
    (void)state;
    size_t room = (NETSIM_PORTS_MAX + 2) * 32;
    size_t length = 0;
    char *words = malloc(room);
    assert_non_null(words);
    length += (size_t)snprintf(words, room, "host a\nhost b\nswitch s\nswitch t\nlink a s\nlink b t\n");
    for (unsigned i = 1; i < NETSIM_PORTS_MAX; i++)
        length += (size_t)snprintf(words + length, room - length, "link s t\n");
    void *memory;
    struct netsim_graph graph = good(words, &memory);
    assert_int_equal(netsim_route_port_count(&graph.routes[0], 1), NETSIM_PORTS_MAX - 1);
    assert_int_equal(netsim_route_port_at(&graph.routes[0], 1, NETSIM_PORTS_MAX - 2), NETSIM_PORTS_MAX - 1);
    free(memory);
    snprintf(words + length, room - length, "link s t\n");
    refuse(words, -LH_ERANGE, "switch s would have more than 4096 ports", "take two");
    free(words);
}

/* As many hosts as a graph may have are fine by themselves, but not with the tables of so many switches. */
static void test_too_large_tables(void **state)
{
    (void)state;
    enum { HOSTS = 65536, SWITCHES = 16384 };
    size_t room = (size_t)(HOSTS + SWITCHES) * 16;
    size_t length = 0;
    char *words = malloc(room);
    assert_non_null(words);
    for (unsigned i = 0; i < HOSTS; i++)
        length += (size_t)snprintf(words + length, room - length, "host h%u\n", i);
    for (unsigned i = 0; i <= SWITCHES; i++)
        length += (size_t)snprintf(words + length, room - length, "switch s%u\n", i);
    refuse(words, -LH_ERANGE, "tables of up to 1073807360 entries exceed 1073741824", "topology.kind");
    snprintf(words + length, room - length, "host one-more\n");
    refuse(words, -LH_ERANGE, "65537 hosts", "at most 65536");
    free(words);
}

static void test_keys_that_do_not_go_with_a_file(void **state)
{
    (void)state;
    void *memory;
    struct netsim_graph graph;
    struct netsim_topology_config config = topology_config(NETSIM_TOPOLOGY_FILE);
    assert_int_equal(build_topology(&config, &graph, &memory), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "topology.file"));
    config.file = netsim_text_of("host a\nhost b\nlink a b\n");
    config.faults.loss = 0.1;
    assert_int_equal(build_topology(&config, &graph, &memory), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "topology.link"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_two_hosts_without_a_switch),
        cmocka_unit_test(test_shortest_paths),
        cmocka_unit_test(test_the_long_way_round_a_triangle_is_none),
        cmocka_unit_test(test_tables_agree_with_closed_forms),
        cmocka_unit_test(test_lines_that_are_refused),
        cmocka_unit_test(test_graphs_that_are_refused),
        cmocka_unit_test(test_too_many_ports),
        cmocka_unit_test(test_too_large_tables),
        cmocka_unit_test(test_keys_that_do_not_go_with_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
