/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/fabric/sim_endpoint.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/min_max.h"
#include "fabric/rx_check.h"
#include "netsim/fabric/sim_packets.h"
#include "netsim/fabric/sim_world.h"
#include "netsim/run/simulation_run.h"
#include "wire/roce_packet.h"

/* ---- endpoint -------------------------------------------------------------------------------------- */

/* QP numbers 0 and 1 are InfiniBand's management QPs. */
#define QPN_FIRST 2u
#define QPNS_MAX  (QP_INFO_GENERATIONS_MAX * QP_INFO_CHANNELS_MAX + 1)

static int no_memory(void)
{
    return lh_fail(LH_ENOMEM, "no memory for a simulated endpoint");
}

/* The first of `count` free ports in a row, or SIM_PORTS_MAX. */
static uint32_t find_ports(const struct sim_host *host, uint32_t count)
{
    for (uint32_t tried = 0; tried < SIM_PORTS_MAX; tried++) {
        uint32_t first = (host->port_next + tried) % SIM_PORTS_MAX;
        uint32_t free_count = 0;
        while (free_count < count && first + free_count < SIM_PORTS_MAX &&
               host->owner_of_port[first + free_count] == NULL)
            free_count++;
        if (free_count == count)
            return first;
    }
    return SIM_PORTS_MAX;
}

/* 0, or a negative lh_error when the host has no ports left, or no memory for their table. */
static int take_ports(struct sim_endpoint *endpoint)
{
    struct sim_host *host = &endpoint->world->hosts[endpoint->host];
    if (host->owner_of_port == NULL)
        host->owner_of_port = calloc(SIM_PORTS_MAX, sizeof(*host->owner_of_port));
    if (host->owner_of_port == NULL)
        return no_memory();
    uint32_t count = endpoint->table.attr.channels + 1;
    uint32_t first = find_ports(host, count);
    if (first == SIM_PORTS_MAX)
        return lh_fail(LH_ENOMEM,
                       "simulated host %u has no %u ports left of its %u; destroy an endpoint first",
                       endpoint->host, count, SIM_PORTS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        host->owner_of_port[first + i] = endpoint;
        endpoint->paths[i].port = (uint16_t)(SIM_PORT_FIRST + first + i);
    }
    host->port_next = (first + count) % SIM_PORTS_MAX;
    return 0;
}

/* All QP numbers of an endpoint differ; where they begin is random, so that another life has others. */
static void number_qps(struct sim_endpoint *endpoint)
{
    struct qp_info_endpoint *own = &endpoint->own;
    uint64_t room = ROCE_QPN_MASK + 1u - QPN_FIRST - QPNS_MAX;
    uint32_t qpn = QPN_FIRST + (uint32_t)lh_prng_below(&endpoint->world->prng, room);
    own->control_qpn = qpn++;
    for (uint32_t g = 0; g < own->generations; g++) {
        for (uint32_t c = 0; c < own->channels; c++)
            own->qpn[g][c] = qpn++;
    }
}

static void describe(struct sim_endpoint *endpoint, uint64_t receive_buffer_bytes)
{
    struct qp_info_endpoint *own = &endpoint->own;
    const struct fabric_endpoint_attr *attr = &endpoint->table.attr;
    own->fabric = QP_INFO_SIM;
    own->family = 6;
    own->channels = (uint8_t)attr->channels;
    own->generations = (uint8_t)attr->generations;
    own->receive_buffer_bytes = receive_buffer_bytes;
    sim_address_of(endpoint->host, own->address);
    for (uint32_t c = 0; c < attr->channels; c++)
        own->channel_port[c] = endpoint->paths[c].port;
    own->control_port = endpoint->paths[attr->channels].port;
    for (uint32_t i = 0; i <= attr->channels; i++)
        endpoint->paths[i].arrived.bytes_max = receive_buffer_bytes;
    number_qps(endpoint);
}

static void check_attr(const struct fabric_endpoint_attr *attr)
{
    assert(attr->channels >= 1 && attr->channels <= QP_INFO_CHANNELS_MAX);
    assert(attr->generations >= 1 && attr->generations <= QP_INFO_GENERATIONS_MAX);
    assert(attr->mtu_bytes >= 1);
    assert(attr->slots >= 1 && attr->slot_bytes >= 1 && attr->stripe_packets >= 1);
    assert(attr->stats != NULL);
}

/* Drawn from what was drawn: the world's generator goes on as if there were none. */
static uint64_t make_secret(const struct sim_endpoint *endpoint)
{
    struct lh_prng own;
    lh_prng_seed(&own, (uint64_t)endpoint->table.key_salt << 32 | endpoint->own.control_qpn);
    return lh_prng_next(&own);
}

int sim_endpoint_create(struct fabric *fabric, const struct fabric_endpoint_attr *attr,
                        struct fabric_endpoint **out)
{
    struct sim_fabric *sim = (struct sim_fabric *)fabric;
    check_attr(attr);
    if (attr->mtu_bytes > ROCE_MTU_MAX)
        return lh_fail(LH_EMTU, "MTU of %u bytes: the simulated network takes at most %u", attr->mtu_bytes,
                       ROCE_MTU_MAX);
    struct sim_endpoint *endpoint = calloc(1, sizeof(*endpoint));
    if (endpoint == NULL)
        return no_memory();
    endpoint->base.fabric = fabric;
    endpoint->world = sim->world;
    endpoint->host = sim->host;
    endpoint->peer_host = SIM_HOSTS_MAX;
    endpoint->table.attr = *attr;
    sim_lock(sim->world);
    int error = take_ports(endpoint);
    if (error == 0) {
        describe(endpoint, sim->receive_buffer_bytes);
        endpoint->table.key_salt = (uint32_t)lh_prng_next(&sim->world->prng);
        endpoint->base.secret = make_secret(endpoint);
    }
    sim_unlock(sim->world);
    if (error != 0) {
        free(endpoint);
        return error;
    }
    *out = &endpoint->base;
    return 0;
}

void sim_endpoint_destroy(struct fabric_endpoint *base)
{
    struct sim_endpoint *endpoint = (struct sim_endpoint *)base;
    struct sim_world *world = endpoint->world;
    sim_lock(world);
    for (uint32_t i = 0; i <= endpoint->table.attr.channels; i++) {
        struct sim_path *path = &endpoint->paths[i];
        world->hosts[endpoint->host].owner_of_port[path->port - SIM_PORT_FIRST] = NULL;
        for (struct sim_packet *packet; (packet = sim_queue_pop(&path->arrived)) != NULL;)
            packet_pool_put(&world->pool, packet);
    }
    sim_unlock(world);
    free(endpoint->table.slots);
    free(atomic_load(&endpoint->table.partials));
    free(endpoint);
}

/* A packet for one of its ports, with the world's lock held. False: the queue is full; counted. */
static bool sim_endpoint_arrive(struct sim_endpoint *endpoint, struct sim_packet *packet)
{
    const struct fabric_endpoint_attr *attr = &endpoint->table.attr;
    uint32_t index = (uint32_t)packet->destination_port - endpoint->paths[0].port;
    assert(index <= attr->channels);
    packet->arrived_ns = sim_host_shows(&endpoint->world->hosts[endpoint->host], sim_now(endpoint->world));
    if (!sim_queue_push(&endpoint->paths[index].arrived, packet)) {
        fabric_count(attr->stats, rx_socket_drops, 1);
        return false;
    }
    if (attr->wake != NULL)
        attr->wake(attr->wake_context, index < attr->channels ? index : FABRIC_CONTROL);
    return true;
}

void sim_endpoint_info(struct fabric_endpoint *base, struct qp_info_endpoint *info)
{
    *info = ((struct sim_endpoint *)base)->own;
}

int sim_endpoint_connect(struct fabric_endpoint *base, const struct qp_info_endpoint *peer)
{
    struct sim_endpoint *endpoint = (struct sim_endpoint *)base;
    uint32_t channels = endpoint->table.attr.channels;
    uint32_t peer_host = sim_host_of(peer->address);
    if (peer->fabric != QP_INFO_SIM || peer->family != 6 || peer_host >= endpoint->world->hosts_count)
        return lh_fail(LH_EADDR,
                       "peer: not a host of this simulated world (open both ends as sim:<world>/<host>)");
    if (peer->channels != channels || peer->generations != endpoint->table.attr.generations)
        return lh_fail(LH_EHANDSHAKE,
                       "channels or generations mismatch: peer %u and %u, this side %u and %u",
                       peer->channels, peer->generations, channels, endpoint->table.attr.generations);
    for (uint32_t i = 0; i <= channels; i++) {
        struct sim_path *path = &endpoint->paths[i];
        path->peer_port = i < channels ? peer->channel_port[i] : peer->control_port;
        sim_checksum_init(&path->sent, endpoint->host, path->port, peer_host, path->peer_port);
        sim_checksum_init(&path->received, peer_host, path->peer_port, endpoint->host, path->port);
    }
    endpoint->peer = *peer;
    endpoint->peer_host = peer_host;
    return 0;
}

int sim_slot_bind(struct fabric_endpoint *base, uint32_t slot, const struct fabric_slot *what,
                  struct fabric_slot_key *key)
{
    struct rx_table *table = &((struct sim_endpoint *)base)->table;
    struct rx_slot *slots = table->slots == NULL ? calloc(table->attr.slots, sizeof(*slots)) : NULL;
    if (slots != NULL)
        rx_table_give_slots(table, slots);
    if (table->slots == NULL)
        return no_memory();
    rx_table_bind(table, slot, what, key);
    return 0;
}

bool sim_takes_pieces(struct fabric_endpoint *base)
{
    struct rx_table *table = &((struct sim_endpoint *)base)->table;
    if (atomic_load(&table->partials) == NULL)
        atomic_store(&table->partials, calloc(1, rx_partials_bytes(table)));
    return atomic_load(&table->partials) != NULL;
}

void sim_slots_idle(struct fabric_endpoint *base)
{
    free(rx_table_take_slots(&((struct sim_endpoint *)base)->table));
}

void sim_slot_unbind(struct fabric_endpoint *base, uint32_t slot)
{
    rx_table_unbind(&((struct sim_endpoint *)base)->table, slot);
}

/* ---- network --------------------------------------------------------------------------------------- */

/*
 * A switched network between the hosts: what a link lets through crosses it before it arrives.
 *
 * With the world's lock held.
 */

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

/* When something happens in the network, in the world's time; LH_TIME_NEVER when there is no network or
 * nothing is in it. */
static lh_time sim_network_next_ns(const struct sim_world *world)
{
    if (world->network == NULL)
        return LH_TIME_NEVER;
    netsim_time at_ps = netsim_event_peek(&world->network->network.events);
    return at_ps >= NETSIM_TIME_MAX ? LH_TIME_NEVER : (at_ps + NETSIM_PS_PER_NS - 1) / NETSIM_PS_PER_NS;
}

/* -LH_ENOMEM: its pool was used up, by flows of its own or by packets of the world. */
static int sim_network_check(const struct sim_world *world)
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

/* A packet enters at its source's port, at a moment that is not after anything due in there. False: the
 * network's pool is used up; the caller keeps the packet. */
static bool sim_network_enter(struct sim_world *world, struct sim_packet *packet, lh_time at_ns)
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

/* Lets it happen up to at_ns. -LH_ENOMEM: the pool is used up, for good. */
static int sim_network_run(struct sim_world *world, lh_time at_ns)
{
    int result = netsim_run(world->network, at_ns * NETSIM_PS_PER_NS, UINT64_MAX);
    return result < 0 ? result : 0;
}

/* The next packet that has left it, or NULL. What was dropped inside is counted and freed. */
static struct sim_packet *sim_network_take(struct sim_world *world)
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

/* ---- transit --------------------------------------------------------------------------------------- */

/* Packets on the way, and their arrival: virtual time moves here and nowhere else. */

bool sim_transit_start(struct sim_world *world, struct sim_packet *packet, lh_time arrive_ns)
{
    struct sim_direction *direction = sim_direction(world, packet->from, packet->to);
    bool first_use = direction->in_flight.ring_capacity == 0;
    if (!timeline_push(&direction->in_flight, arrive_ns, world->packets_created, packet))
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
        struct timeline *timeline = &world->used[i]->in_flight;
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

bool sim_world_waiting(struct sim_world *world, uint32_t host, uint16_t port, uint64_t *bytes,
                       uint64_t *bytes_max)
{
    assert(host < world->hosts_count);
    sim_lock(world);
    const struct sim_endpoint *endpoint = sim_port_owner(&world->hosts[host], port);
    if (endpoint != NULL) {
        const struct sim_queue *queue = &endpoint->paths[port - endpoint->paths[0].port].arrived;
        *bytes = queue->bytes;
        *bytes_max = queue->bytes_max;
    }
    sim_unlock(world);
    return endpoint != NULL;
}
