/*
 * transit.c - packets on the way, and their arrival: virtual time moves here and nowhere else.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/fabric/world.h"

#include <assert.h>
#include <string.h>

#include "base/earlier.h"
#include "base/error.h"
#include "netsim/fabric/endpoint.h"
#include "netsim/fabric/network.h"
#include "wire/roce.h"

bool sim_transit_start(struct sim_world *world, struct sim_packet *packet, lh_time arrive_ns)
{
    struct sim_direction *direction = sim_direction(world, packet->from, packet->to);
    bool first_use = direction->on_the_way.ring_capacity == 0;
    if (!timeline_push(&direction->on_the_way, arrive_ns, world->packets_created, packet))
        return false;
    world->packets_created++;
    packet->last_bytes = packet->bytes >= 4 ? icrc_load(packet->data + packet->bytes - 4) : 0;
    if (first_use) {
        assert(world->used_count < world->hosts_count * world->hosts_count);
        world->used[world->used_count++] = direction;
    }
    return true;
}

/* The timeline whose first packet arrives before all others, or NULL. At most as many rounds as there are
 * directions in use: two, for two hosts. */
static struct timeline *earliest(const struct sim_world *world)
{
    struct timeline *best = NULL;
    const struct timeline_entry *best_entry = NULL;
    for (uint32_t i = 0; i < world->used_count; i++) {
        struct timeline *timeline = &world->used[i]->on_the_way;
        const struct timeline_entry *entry = timeline_first(timeline);
        if (entry == NULL)
            continue;
        bool sooner = best_entry == NULL || entry->due_ns < best_entry->due_ns ||
                      (entry->due_ns == best_entry->due_ns && entry->order < best_entry->order);
        if (sooner) {
            best = timeline;
            best_entry = entry;
        }
    }
    return best;
}

lh_time sim_transit_next_ns(const struct sim_world *world)
{
    const struct timeline *timeline = earliest(world);
    lh_time link_ns = timeline == NULL ? LH_TIME_NEVER : timeline_next_ns(timeline);
    return lh_earlier(link_ns, sim_network_next_ns(world));
}

static uint64_t trace_add(uint64_t trace, uint64_t value)
{
    trace = (trace ^ value) * 0x9E3779B97F4A7C15u; /* 2^64 / golden ratio: spreads every bit upwards */
    return trace ^ (trace >> 29);
}

/* The iCRC stands for the contents. */
static void trace_packet(struct sim_world *world, const struct sim_packet *packet, lh_time at_ns)
{
    uint64_t place = (uint64_t)packet->from << 56 | (uint64_t)packet->to << 48 |
                     (uint64_t)packet->source_port << 32 | (uint64_t)packet->destination_port << 16;
    world->trace = trace_add(world->trace, at_ns);
    world->trace = trace_add(world->trace, place);
    world->trace = trace_add(world->trace, (uint64_t)packet->bytes << 32 | packet->last_bytes);
}

static void tell_watch(struct sim_world *world, struct sim_packet *packet, lh_time at_ns,
                       enum sim_arrival arrival)
{
    const struct sim_datagram datagram = sim_packet_view(packet, at_ns);
    world->watch(world->watch_context, &datagram, arrival);
}

static enum sim_arrival put_into_queue(struct sim_world *world, struct sim_packet *packet)
{
    struct sim_endpoint *endpoint = sim_port_owner(&world->hosts[packet->to], packet->destination_port);
    if (endpoint == NULL) {
        world->counts.unknown++;
        return SIM_UNKNOWN;
    }
    if (!sim_endpoint_arrive(endpoint, packet)) {
        world->counts.overflowed++;
        return SIM_OVERFLOWED;
    }
    world->counts.delivered++;
    return SIM_DELIVERED;
}

static void arrive(struct sim_world *world, struct sim_packet *packet, lh_time at_ns)
{
    trace_packet(world, packet, at_ns);
    enum sim_arrival arrival = put_into_queue(world, packet);
    if (world->watch != NULL)
        tell_watch(world, packet, at_ns, arrival);
    if (arrival != SIM_DELIVERED)
        packet_pool_put(&world->pool, packet);
}

lh_time sim_world_next_event(struct sim_world *world)
{
    sim_lock(world);
    lh_time next_ns = sim_transit_next_ns(world);
    sim_unlock(world);
    return next_ns;
}

/* Lets the first packet of a link arrive, or enter the network. */
static void link_ends(struct sim_world *world, struct timeline *timeline, lh_time at_ns)
{
    struct sim_packet *packet = timeline_pop_due(timeline, at_ns);
    const struct timeline_entry *next = timeline_first(timeline);
    if (next != NULL)
        __builtin_prefetch(next->item);
    if (!packet->crosses_network) {
        arrive(world, packet, at_ns);
    } else if (!sim_network_enter(world, packet, at_ns)) {
        world->pool_used_up = true;
        world->counts.lost++;
        packet_pool_put(&world->pool, packet);
    }
}

static int network_ends(struct sim_world *world, lh_time at_ns)
{
    int result = sim_network_run(world, at_ns);
    for (struct sim_packet *packet; (packet = sim_network_take(world)) != NULL;)
        arrive(world, packet, at_ns);
    return result;
}

int sim_world_advance(struct sim_world *world, lh_time to)
{
    sim_lock(world);
    assert(to >= sim_now(world) && to != LH_TIME_NEVER);
    int result = 0;
    /* Ends when nothing is due: arrivals start no new packets, and the network forwards none for ever. */
    while (result == 0) {
        struct timeline *timeline = earliest(world);
        lh_time link_ns = timeline == NULL ? LH_TIME_NEVER : timeline_next_ns(timeline);
        lh_time network_ns = sim_network_next_ns(world);
        if (lh_earlier(link_ns, network_ns) > to)
            break;
        if (network_ns <= link_ns)
            result = network_ends(world, network_ns);
        else
            link_ends(world, timeline, link_ns);
        if (result != 0)
            to = lh_earlier(link_ns, network_ns);
    }
    atomic_store_explicit(&world->now_ns, to, memory_order_relaxed);
    result = sim_network_check(world);
    sim_unlock(world);
    return result;
}

int sim_world_inject(struct sim_world *world, const struct sim_datagram *datagram)
{
    if (datagram->bytes > SIM_DATAGRAM_MAX)
        return lh_fail(LH_EINVAL, "datagram of %u bytes; at most %u fit", datagram->bytes,
                       SIM_DATAGRAM_MAX);
    if (datagram->from >= world->hosts_count || datagram->to >= world->hosts_count)
        return lh_fail(LH_EINVAL, "hosts %u and %u; they are numbered from 0 to %u", datagram->from,
                       datagram->to, world->hosts_count - 1);
    sim_lock(world);
    lh_time now = sim_now(world);
    struct sim_packet *packet = packet_pool_get(&world->pool);
    bool started = false;
    if (packet != NULL) {
        packet->from = datagram->from;
        packet->to = datagram->to;
        packet->source_port = datagram->source_port;
        packet->destination_port = datagram->destination_port;
        packet->bytes = datagram->bytes;
        packet->crosses_network = false;
        packet->ecn_capable = packet->marked = false;
        if (datagram->bytes > 0)
            memcpy(packet->data, datagram->data, datagram->bytes);
        started = sim_transit_start(world, packet, datagram->at_ns > now ? datagram->at_ns : now);
        if (!started)
            packet_pool_put(&world->pool, packet);
    }
    sim_unlock(world);
    return started
               ? 0
               : lh_fail(LH_ENOMEM, "no memory for another packet in simulated world '%s'", world->name);
}
