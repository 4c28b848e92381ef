/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/fabric/endpoint.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "netsim/fabric/address.h"
#include "wire/roce.h"

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
    assert(attr->mtu_bytes >= 1 && attr->mtu_bytes <= ROCE_MTU_MAX);
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

bool sim_endpoint_arrive(struct sim_endpoint *endpoint, struct sim_packet *packet)
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
        return lh_fail(LH_EHANDSHAKE, "the peer has %u channels and %u generations, this end %u and %u",
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

void sim_slots_rest(struct fabric_endpoint *base)
{
    free(rx_table_take_slots(&((struct sim_endpoint *)base)->table));
}

void sim_slot_unbind(struct fabric_endpoint *base, uint32_t slot)
{
    rx_table_unbind(&((struct sim_endpoint *)base)->table, slot);
}
