/*
 * long_link.c - see long_link.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/long_link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "netsim/flowcontrol/link_rules.h"

struct netsim_world world;

static const char plain[] = "host a0\nhost a1\nhost a2\nhost a3\n"
                            "host b0 site=1\nhost b1 site=1\nhost b2 site=1\nhost b3 site=1\n"
                            "switch left tier=dci\nswitch right tier=dci site=1\n"
                            "link a0 left\nlink a1 left\nlink a2 left\nlink a3 left\n"
                            "link b0 right\nlink b1 right\nlink b2 right\nlink b3 right\n";
static const char direct[] = "link left right rate=400Gbit delay=100us\n";
static const char relayed[] = "switch ra tier=relay\nswitch rb tier=relay site=1\n"
                              "link left ra rate=400Gbit delay=0\nlink rb right rate=400Gbit delay=0\n"
                              "link ra rb rate=400Gbit delay=100us\n";

const struct way ways[WAYS] = {
    {"pfc", NETSIM_LONG_PFC, false, false, 2 * BDP + FEW, 0},
    {"bifrost", NETSIM_LONG_BIFROST, false, false, BDP + 2 * 500000 + FEW, 0},
    {"bifrost, guarded", NETSIM_LONG_BIFROST, false, false, BDP + 2 * 500000 + FEW, 1},
    {"bifrost, as printed", NETSIM_LONG_BIFROST, true, false, BDP + 2 * 500000 + 24 * FRAME, 0},
    {"cbfc", NETSIM_LONG_CBFC, false, false, BDP + BDP / 50 + FEW, 0},
    {"swing", NETSIM_LONG_SWING, false, false, BDP + 20 * FRAME, 0},
    {"swing by threshold", NETSIM_LONG_SWING, false, true, 2 * BDP + 20 * FRAME, 0},
};

static char topology[2048];

struct netsim_config way_config(const struct way *way)
{
    struct netsim_config config = netsim_world_config(NETSIM_TOPOLOGY_FILE);
    bool relays = way->control == NETSIM_LONG_SWING;
    memcpy(topology, plain, sizeof plain);
    strcat(topology, relays ? relayed : direct);
    config.topology.file = (struct netsim_text){.data = topology, .bytes = strlen(topology)};
    config.switches.pfc = true;
    config.longs = (struct netsim_long_config){
        .control = way->control,
        .slot_ps = 10 * NETSIM_PS_PER_US,
        .leak_slots = 1,
        .guard_slots = way->guard_slots,
        .by_arrivals = way->by_arrivals,
        .relay_threshold = way->relay_threshold,
    };
    config.transport.rto = 1e6;
    if (way->relay_threshold) { /* which then is PFC, and needs as much */
        config.longs.xoff_bytes = BDP + FEW;
        config.longs.buffer_bytes = way->needs_bytes;
    }
    return config;
}

void open_flows(const struct netsim_config *config, uint64_t bytes, uint32_t receivers)
{
    struct netsim_flow_request flows[HOSTS];
    for (uint32_t i = 0; i < HOSTS; i++)
        flows[i] = (struct netsim_flow_request){bytes, 0, i, HOSTS + i % receivers};
    netsim_world_open(&world, config, flows, HOSTS, 1);
    assert_int_equal(netsim_control_check(config, &world.graph), 0);
}

static uint32_t node_named(const char *name)
{
    for (uint32_t n = 0; n < world.graph.nodes_count; n++)
        if (strcmp(world.graph.nodes[n].name, name) == 0)
            return n;
    fail_msg("no %s", name);
    return 0;
}

const struct netsim_port *long_link(void)
{
    bool relays = world.config.longs.control == NETSIM_LONG_SWING;
    uint32_t from = node_named(relays ? "ra" : "left");
    return &world.net.network.ports[netsim_world_link(&world, from, node_named(relays ? "rb" : "right"))];
}

static uint32_t link_to_receiver(uint32_t receiver)
{
    return netsim_world_link(&world, node_named("right"), HOSTS + receiver);
}

void stop_receivers(uint32_t receivers, bool stop)
{
    for (uint32_t i = 0; i < receivers; i++)
        netsim_world_pause(&world, link_to_receiver(i), world.config.transport.data_priority, stop);
}

void stop_and_go(const struct netsim_config *config, uint64_t bytes)
{
    open_flows(config, bytes, HOSTS);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(netsim_run(&world.net, (1 + 4 * i) * 333 * NETSIM_PS_PER_US, UINT64_MAX), 0);
        stop_receivers(HOSTS, true);
        assert_int_equal(netsim_run(&world.net, (3 + 4 * i) * 333 * NETSIM_PS_PER_US, UINT64_MAX), 0);
        stop_receivers(HOSTS, false);
    }
    assert_int_equal(netsim_run(&world.net, NETSIM_PS_PER_S, UINT64_MAX), 1);
}
