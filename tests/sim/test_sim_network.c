/*
 * The real stack through simulated switches: what a queue drops is repaired, paths differ, runs repeat.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/connection_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/netsim_world.h"

#define MESSAGE_BYTES 400000u

struct network_pair {
    struct netsim_world network;
    struct connection_pair pair;
};

static const struct netsim_flow_request no_flows[1];

/* Two hosts, either side of two switches whose middle cable is the bottleneck. */
static struct netsim_config dumbbell(void)
{
    struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
    config.topology.hosts = 1;
    config.topology.rate_bps = 10000000000;
    config.topology.core_rate_bps = 1000000000;
    config.topology.delay_ps = NETSIM_PS_PER_US;
    config.topology.core_delay_ps = NETSIM_PS_PER_MS;
    return config;
}

static void open_pair(struct network_pair *it, const struct netsim_config *config,
                      const struct netsim_flow_request *flows, uint32_t flows_count, uint32_t channels,
                      const char *link)
{
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.channels = channels;
    netsim_world_open(&it->network, config, flows != NULL ? flows : no_flows, flows_count, 7);
    connection_pair_open(&it->pair, "network", 5, link, &attr, NULL);
    sim_world_set_network(it->pair.world, &it->network.net);
}

static void close_pair(struct network_pair *it)
{
    connection_pair_close(&it->pair);
    netsim_world_close(&it->network);
}

/* One message from end 0 to end 1; every byte is looked at. How long it took the sender. */
static lh_time pass(struct connection_pair *pair)
{
    uint8_t *data = connection_pair_bytes(MESSAGE_BYTES, 3);
    uint8_t *buffer = calloc(1, MESSAGE_BYTES);
    struct lh_request *receive = connection_pair_recv(pair, 1, buffer, MESSAGE_BYTES);
    struct lh_result sent =
        connection_pair_finish(pair, connection_pair_send(pair, 0, data, MESSAGE_BYTES));
    struct lh_result received = connection_pair_finish(pair, receive);
    assert_int_equal(sent.error, 0);
    assert_int_equal(received.error, 0);
    assert_int_equal(received.bytes, MESSAGE_BYTES);
    assert_memory_equal(data, buffer, MESSAGE_BYTES);
    free(data);
    free(buffer);
    return sent.ended_ns - sent.started_ns;
}

static uint64_t sent_by(const struct netsim_world *network, uint32_t from, uint32_t to)
{
    return network->net.network.ports[netsim_world_link(network, from, to)].sent_packets;
}

static void a_message_crosses_the_switches(void **state)
{
    (void)state;
    static struct network_pair it;
    const struct netsim_config config = dumbbell();
    open_pair(&it, &config, NULL, 0, 1, "none");
    lh_time took_ns = pass(&it.pair);
    /* Not faster than the bottleneck (8 ns a byte) and light (2 ms there and back). */
    assert_true(took_ns > 8 * (lh_time)MESSAGE_BYTES + 2 * LH_NS_PER_MS);
    assert_true(took_ns < 2 * (8 * (lh_time)MESSAGE_BYTES + 2 * LH_NS_PER_MS));
    assert_true(sent_by(&it.network, 2, 3) >= MESSAGE_BYTES / 1024);
    assert_int_equal(it.network.net.network.totals.dropped_packets, 0);
    close_pair(&it);
}

static void what_a_full_queue_drops_is_sent_again(void **state)
{
    (void)state;
    static struct network_pair it;
    struct netsim_config config = dumbbell();
    config.switches.queue_bytes = 20000;
    open_pair(&it, &config, NULL, 0, 1, "none");
    pass(&it.pair);
    assert_true(it.network.net.network.totals.dropped_packets > 0);
    struct sim_counts counts = sim_world_counts(it.pair.world);
    assert_true(counts.lost == it.network.net.network.totals.dropped_packets);
    close_pair(&it);
}

static void faults_inside_the_network_are_repaired(void **state)
{
    (void)state;
    static struct network_pair it;
    struct netsim_config config = dumbbell();
    config.topology.faults = (struct lh_link_spec){
        .loss = 0.05, .corrupt = 0.02, .reorder = 0.1, .jitter_ns = 100000, .seed = 4};
    open_pair(&it, &config, NULL, 0, 1, "loss=0.01,duplicate=0.02");
    pass(&it.pair);
    struct lh_stats stats;
    assert_int_equal(lh_connection_stats(it.pair.ends[1], &stats), 0);
    assert_true(it.network.net.network.totals.lost_packets > 0);
    assert_true(it.network.net.network.totals.corrupted_packets > 0 && stats.bad_icrc > 0);
    close_pair(&it);
}

/* How long a message from host 0 to host 1 takes while so many hosts of the other side send to host 1. */
static lh_time pass_beside(uint32_t flows_count)
{
    static struct network_pair it;
    struct netsim_config config = dumbbell();
    config.topology.hosts = 2; /* 0 and 1 on the left, 2 and 3 on the right */
    config.topology.core_rate_bps = 0;
    config.topology.core_delay_ps = NETSIM_NEVER;
    const struct netsim_flow_request flows[] = {
        {.bytes = 4000000, .source = 2, .destination = 1},
        {.bytes = 4000000, .source = 3, .destination = 1},
    };
    open_pair(&it, &config, flows, flows_count, 1, "none");
    lh_time took_ns = pass(&it.pair);
    connection_pair_run(&it.pair, LH_NS_PER_S);
    assert_int_equal(it.network.net.network.totals.flows_done, flows_count);
    close_pair(&it);
    return took_ns;
}

static void other_traffic_slows_it_down(void **state)
{
    (void)state;
    assert_true(pass_beside(2) > pass_beside(0) * 3 / 2);
}

static void channels_take_different_paths(void **state)
{
    (void)state;
    static struct network_pair it;
    struct netsim_config config = netsim_world_config(NETSIM_LEAF_SPINE);
    config.topology.hosts = 1;
    config.topology.leaves = 2;
    config.topology.spines = 4;
    open_pair(&it, &config, NULL, 0, 8, "none");
    pass(&it.pair);
    uint32_t used = 0;
    for (uint32_t spine = 0; spine < 4; spine++)
        used += sent_by(&it.network, 2, 4 + spine) > 10;
    assert_true(used >= 2); /* eight channels on four spines: all on one has a chance of 6e-5 */
    close_pair(&it);
}

static uint64_t trace_of_a_run(void)
{
    static struct network_pair it;
    struct netsim_config config = dumbbell();
    config.switches.queue_bytes = 20000;
    open_pair(&it, &config, NULL, 0, 2, "loss=0.01");
    pass(&it.pair);
    uint64_t trace = sim_world_trace(it.pair.world);
    close_pair(&it);
    return trace;
}

static void the_same_run_each_time(void **state)
{
    (void)state;
    uint64_t trace = trace_of_a_run();
    assert_true(trace != 0 && trace == trace_of_a_run());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_crosses_the_switches),
        cmocka_unit_test(what_a_full_queue_drops_is_sent_again),
        cmocka_unit_test(faults_inside_the_network_are_repaired),
        cmocka_unit_test(other_traffic_slows_it_down),
        cmocka_unit_test(channels_take_different_paths),
        cmocka_unit_test(the_same_run_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
