/*
 * test_sim_world.c - the simulated network through its public calls: what they refuse, many hosts, switches.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/sim.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/connection.h>
#include <longhaul/netsim.h>

#define BYTES 100000u

static void test_refusals(void **state)
{
    (void)state;
    struct lh_sim_world *world, *other;
    assert_int_equal(lh_sim_world_create(&(struct lh_sim_attr){0}, &world), -LH_EINVAL);
    assert_int_equal(lh_sim_world_create(&(struct lh_sim_attr){.name = "a/b"}, &world), -LH_EINVAL);
    assert_int_equal(
        lh_sim_world_create(&(struct lh_sim_attr){.name = "a", .hosts = LH_SIM_HOSTS_MAX + 1}, &world),
        -LH_ERANGE);
    assert_int_equal(lh_sim_world_create(&(struct lh_sim_attr){.name = "a"}, &world), 0);
    assert_int_equal(lh_sim_world_create(&(struct lh_sim_attr){.name = "a"}, &other), -LH_EINVAL);
    assert_int_equal(lh_sim_world_advance(world, 5), 0);
    assert_int_equal(lh_sim_world_advance(world, 4), -LH_EINVAL);
    assert_int_equal(lh_sim_world_advance(world, LH_TIME_NEVER), -LH_EINVAL);
    assert_int_equal(lh_sim_world_turn(world, NULL, 0, LH_TIME_NEVER), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "no event is pending"));
    assert_int_equal(lh_sim_world_now(world), 5);
    assert_int_equal(lh_sim_world_next_event(world), LH_TIME_NEVER);
    assert_int_equal(lh_sim_world_set_link(world, 0, 2, &(struct lh_link_spec){0}), -LH_ERANGE);
    struct lh_connection *connection;
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.workers = LH_NO_WORKERS;
    const char *const wrong[] = {"sim:a/2", "sim:a/128",        "sim:a/00",
                                 "sim:a/",  "sim:a/4294967296", "sim:b/0"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        attr.device = wrong[i];
        assert_int_equal(lh_open(&attr, &connection), -LH_EADDR);
    }
    lh_sim_world_destroy(world);
    lh_sim_world_destroy(NULL);
}

struct pair {
    struct lh_connection *ends[2];
    struct lh_request *requests[2];
    uint8_t data[BYTES], buffer[BYTES];
};

static void connect_pair(struct pair *pair, const uint32_t hosts[2], uint8_t fill)
{
    uint8_t blobs[2][LH_BLOB_MAX];
    size_t bytes[2] = {LH_BLOB_MAX, LH_BLOB_MAX};
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.workers = LH_NO_WORKERS;
    attr.slots = 4;
    attr.slot_bytes = 65536;
    for (int i = 0; i < 2; i++) {
        char device[32];
        snprintf(device, sizeof device, "sim:many/%u", hosts[i]);
        attr.device = device;
        assert_int_equal(lh_open(&attr, &pair->ends[i]), 0);
        assert_int_equal(lh_blob(pair->ends[i], blobs[i], &bytes[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(lh_attach(pair->ends[i], blobs[1 - i], bytes[1 - i]), 0);
    memset(pair->data, fill, BYTES);
    assert_int_equal(lh_recv(pair->ends[1], pair->buffer, BYTES, NULL, &pair->requests[1]), 0);
    assert_int_equal(lh_send(pair->ends[0], pair->data, BYTES, NULL, &pair->requests[0]), 0);
}

static void close_pair(const struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        lh_request_free(pair->requests[i]);
        lh_close(pair->ends[i]);
    }
}

/* Pairs of hosts that are far apart, over a fat tree of 128 hosts or over links alone; the trace. */
static uint64_t run_many(struct lh_netsim *network, const char *link)
{
    static const uint32_t hosts[3][2] = {{0, 127}, {127, 0}, {9, 64}};
    static struct pair pairs[3];
    struct lh_connection *all[6];
    struct lh_sim_world *world;
    struct lh_sim_attr attr = {.name = "many", .hosts = 128, .seed = 7, .network = network};
    assert_int_equal(lh_link_parse(link, &attr.link), 0);
    assert_int_equal(lh_sim_world_create(&attr, &world), 0);
    for (unsigned i = 0; i < 3; i++) {
        connect_pair(&pairs[i], hosts[i], (uint8_t)(i + 1));
        all[2 * i] = pairs[i].ends[0];
        all[2 * i + 1] = pairs[i].ends[1];
    }
    for (unsigned i = 0; i < 3; i++)
        while (!lh_test(pairs[i].requests[0], NULL)) {
            assert_int_equal(lh_sim_world_turn(world, all, 6, LH_NS_PER_S), 0);
            assert_true(lh_sim_world_now(world) < LH_NS_PER_S);
        }
    for (unsigned i = 0; i < 3; i++) {
        struct lh_result result = {0};
        assert_int_equal(lh_test(pairs[i].requests[1], &result), 1);
        assert_int_equal(result.error, 0);
        assert_memory_equal(pairs[i].buffer, pairs[i].data, BYTES);
        close_pair(&pairs[i]);
    }
    struct lh_sim_counts counts;
    lh_sim_world_counts(world, &counts);
    assert_true(counts.delivered_packets > 3 * BYTES / 4096 && counts.lost_packets > 0);
    uint64_t trace = lh_sim_world_trace(world);
    lh_sim_world_destroy(world);
    return trace;
}

static struct lh_netsim *create_network(const char *topology, const char *flow_bytes, const char *packets)
{
    struct lh_netsim_config *config;
    struct lh_netsim *network;
    assert_int_equal(lh_netsim_config_create(&config), 0);
    assert_int_equal(lh_netsim_config_set(config, "topology.kind", topology), 0);
    assert_int_equal(lh_netsim_config_set(config, "topology.k", "8"), 0);
    assert_int_equal(lh_netsim_config_set(config, "workload.bytes", flow_bytes), 0);
    assert_int_equal(lh_netsim_config_set(config, "run.packets", packets), 0);
    assert_int_equal(lh_netsim_create(config, 1, &network), 0);
    lh_netsim_config_destroy(config);
    return network;
}

static void test_many_hosts(void **state)
{
    (void)state;
    uint64_t trace = run_many(NULL, "rtt=1ms,rate=10Gbit,loss=5%");
    assert_true(trace == run_many(NULL, "rtt=1ms,rate=10Gbit,loss=5%"));
}

static void test_many_hosts_over_switches(void **state)
{
    (void)state;
    struct lh_netsim *network = create_network("fat-tree", "1", "100000");
    struct lh_sim_world *world;
    assert_int_equal(lh_netsim_hosts_count(network), 128);
    run_many(network, "loss=5%");
    /* It has run now. */
    struct lh_sim_attr attr = {.name = "late", .network = network};
    assert_int_equal(lh_sim_world_create(&attr, &world), -LH_EINVAL);
    lh_netsim_destroy(network);
}

/* Flows of the network fill its pool, or packets of the connections do: the world stops, for good. */
static void test_packets_used_up(void **state)
{
    (void)state;
    static const char *const flow_bytes[] = {"10MB", "1"};
    static struct pair pair;
    for (unsigned i = 0; i < 2; i++) {
        struct lh_netsim *network = create_network("dumbbell", flow_bytes[i], "16");
        struct lh_sim_world *world;
        struct lh_sim_attr attr = {.name = "many", .network = network};
        int result = 0;
        assert_int_equal(lh_sim_world_create(&attr, &world), 0);
        connect_pair(&pair, (const uint32_t[2]){0, 1}, 1);
        while (result == 0 && lh_sim_world_now(world) < LH_NS_PER_S)
            result = lh_sim_world_turn(world, pair.ends, 2, LH_NS_PER_S);
        assert_int_equal(result, -LH_ENOMEM);
        assert_string_equal(lh_last_error(), "pool of 16 packets is used up (raise run.packets)");
        lh_time now = lh_sim_world_now(world);
        assert_int_equal(lh_sim_world_advance(world, now + 1), -LH_ENOMEM);
        assert_int_equal(lh_sim_world_now(world), now);
        close_pair(&pair);
        lh_sim_world_destroy(world);
        lh_netsim_destroy(network);
    }
}

/* The network counts picoseconds: it has less time than a world of links alone. */
static void test_end_of_time(void **state)
{
    (void)state;
    static struct pair pair;
    const lh_time end_ns = UINT64_MAX / 2 / 1000;
    struct lh_netsim *network = create_network("dumbbell", "1", "1000");
    struct lh_sim_world *world;
    struct lh_sim_attr attr = {.name = "many", .network = network};
    assert_int_equal(lh_sim_world_create(&attr, &world), 0);
    assert_int_equal(lh_sim_world_advance(world, end_ns), -LH_ERANGE);
    assert_int_equal(lh_sim_world_advance(world, end_ns - 1000), 0);
    assert_int_equal(lh_sim_world_turn(world, NULL, 0, end_ns), -LH_ERANGE);
    connect_pair(&pair, (const uint32_t[2]){0, 1}, 1);
    int result = 0;
    while (result == 0)
        result = lh_sim_world_turn(world, pair.ends, 2, LH_TIME_NEVER);
    assert_int_equal(result, -LH_ERANGE);
    close_pair(&pair);
    lh_sim_world_destroy(world);
    lh_netsim_destroy(network);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_many_hosts),
        cmocka_unit_test(test_many_hosts_over_switches),
        cmocka_unit_test(test_packets_used_up),
        cmocka_unit_test(test_end_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
