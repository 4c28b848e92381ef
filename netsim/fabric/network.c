/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/fabric/network.h"

#include <assert.h>

#include "netsim/run/run.h"

/* Ethernet 14, IPv6 40, UDP 8, frame check sequence 4. */
#define OUTER_BYTES 66u

void sim_world_set_network(struct sim_world *world, struct netsim *network)
{
    sim_lock(world);
    assert(world->packets_created == 0);
    assert(network == NULL || (network->network.hosts_count >= 2 && network->network.now_ps == 0));
    world->network = network;
    if (network != NULL)
        network->runs_on = true;
    sim_unlock(world);
}

lh_time sim_network_next_ns(const struct sim_world *world)
{
    if (world->network == NULL)
        return LH_TIME_NEVER;
    netsim_time at_ps = netsim_event_peek(&world->network->network.events);
    return at_ps >= NETSIM_TIME_MAX ? LH_TIME_NEVER : (at_ps + NETSIM_PS_PER_NS - 1) / NETSIM_PS_PER_NS;
}

int sim_network_check(const struct sim_world *world)
{
    bool used_up =
        world->pool_used_up || (world->network != NULL && world->network->network.out_of_packets);
    return used_up ? netsim_used_up(world->network) : 0;
}

/* What switches hash: the ports differ from channel to channel, so channels take different paths. */
static uint32_t entropy_of(const struct sim_packet *packet)
{
    return ((uint32_t)packet->source_port << 16 | packet->destination_port) ^
           ((uint32_t)packet->from << 8 | packet->to) * 0x9E3779B1u;
}

bool sim_network_enter(struct sim_world *world, struct sim_packet *packet, lh_time at_ns)
{
    struct netsim *network = world->network;
    const struct netsim_raw raw = {
        .cookie = (uint64_t)(uintptr_t)packet,
        .source = packet->from,
        .destination = packet->to,
        .wire_bytes = packet->bytes + OUTER_BYTES,
        .ecn_capable = packet->ecn_capable,
    };
    assert(packet->from < network->network.hosts_count && packet->to < network->network.hosts_count);
    netsim_settle(network, at_ns * NETSIM_PS_PER_NS);
    /* In the queues of the network's own flows. */
    return netsim_raw_send(network, &raw, entropy_of(packet), network->transport.config.data_priority);
}

int sim_network_run(struct sim_world *world, lh_time at_ns)
{
    int result = netsim_run(world->network, at_ns * NETSIM_PS_PER_NS, UINT64_MAX);
    return result < 0 ? result : 0;
}

struct sim_packet *sim_network_take(struct sim_world *world)
{
    struct netsim_raw raw;
    while (netsim_raw_take(world->network, &raw)) {
        struct sim_packet *packet = (struct sim_packet *)(uintptr_t)raw.cookie;
        packet->marked = raw.marked;
        if (raw.corrupted)
            sim_packet_flip(packet, raw.corrupt_bit);
        if (raw.destination != NETSIM_DROPPED)
            return packet;
        world->counts.lost++;
        packet_pool_put(&world->pool, packet);
    }
    return NULL;
}
