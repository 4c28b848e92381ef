/*
 * Creation and end of an endpoint: its channels, its queue pair numbers, its slots.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/endpoint.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "fabric/endpoint_check.h"
#include "fabric/random.h"
#include "fabric/socket_drops.h"
#include "fabric/udp/demux.h"
#include "fabric/udp/port.h"
#include "fabric/udp/rx.h"
#include "store/store.h"

#define CACHE_LINE_BYTES 64u

/* A full packet then needs no padding, so that its place in a burst is known beforehand. */
static int check_mtu(uint32_t mtu_bytes)
{
    if (mtu_bytes < ROCE_PAYLOAD_MIN || mtu_bytes > ROCE_MTU_MAX || mtu_bytes % 4 != 0)
        return lh_fail(LH_EMTU, "MTU %u: invalid (use a multiple of 4 from %u to %u)", mtu_bytes,
                       ROCE_PAYLOAD_MIN, ROCE_MTU_MAX);
    return 0;
}

/* ---- its memory: itself, pointers to its channels, the channels ---------------------------------------- */

static size_t to_cache_line(size_t bytes)
{
    return (bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
}

static size_t channels_offset(const struct fabric_endpoint_attr *attr)
{
    return to_cache_line(sizeof(struct udp_endpoint) + attr->channels * sizeof(struct udp_channel *));
}

static size_t channel_bytes(const struct fabric_endpoint_attr *attr)
{
    return to_cache_line(offsetof(struct udp_channel, generations) +
                         attr->generations * sizeof(struct udp_generation));
}

static size_t endpoint_bytes(const struct fabric_endpoint_attr *attr)
{
    return channels_offset(attr) + attr->channels * channel_bytes(attr);
}

/* ------------------------------------------------------------------------------------------------------ */

static int make_channel(struct udp_endpoint *endpoint, uint32_t index)
{
    const struct fabric_endpoint_attr *attr = &endpoint->table.attr;
    size_t offset = channels_offset(attr) + index * channel_bytes(attr);
    struct udp_channel *channel = (struct udp_channel *)((uint8_t *)endpoint + offset);
    endpoint->channels[index] = channel; /* from here on endpoint_destroy ends it */
    channel->endpoint = endpoint;
    channel->index = index;
    channel->port = udp_fabric_of(endpoint)->ports[index];
    channel->tx.gso = true;
    atomic_store_explicit(&channel->rx.shared_drops, socket_drops(channel->port->shared.fd),
                          memory_order_relaxed);
    uint32_t psn[QP_INFO_GENERATIONS_MAX];
    int error = fabric_random(psn, sizeof psn);
    for (uint32_t i = 0; i < attr->generations && error == 0; i++)
        channel->generations[i].psn = psn[i] & ROCE_PSN_MASK;
    return error;
}

static int make_channels(struct udp_endpoint *endpoint)
{
    struct udp_fabric *fabric = udp_fabric_of(endpoint);
    uint32_t channels = endpoint->table.attr.channels;
    pthread_mutex_lock(&fabric->lock);
    int error = udp_ports_open(fabric, channels);
    for (uint32_t i = 0; i < channels && error == 0; i++)
        error = make_channel(endpoint, i);
    pthread_mutex_unlock(&fabric->lock);
    return error;
}

/* What came for it and waits is nobody's any more. Under the lock. */
static void end_channel(struct udp_channel *channel)
{
    if (channel == NULL)
        return;
    channel->rx.arrivals.next = channel->rx.arrivals.end = 0;
    if (udp_direct_of(channel) != NULL) {
        (void)udp_port_begin_leave(channel); /* fails: the next owner of the socket drains it */
        udp_port_leave(channel);
    }
    udp_inbox_clear(&udp_fabric_of(channel->endpoint)->packets, &channel->inbox);
}

static int add_qps(struct udp_endpoint *endpoint)
{
    const struct fabric_endpoint_attr *attr = &endpoint->table.attr;
    struct udp_fabric *fabric = udp_fabric_of(endpoint);
    pthread_mutex_lock(&fabric->lock);
    struct udp_qp control = {.endpoint = endpoint, .channel = UDP_QP_CONTROL};
    int error = qpn_table_add(&fabric->qps, &control);
    endpoint->control_qpn = control.qpn;
    for (uint32_t generation = 0; generation < attr->generations; generation++) {
        for (uint32_t channel = 0; channel < attr->channels && error == 0; channel++) {
            struct udp_qp qp = {
                .endpoint = endpoint, .channel = (uint8_t)channel, .generation = (uint8_t)generation};
            error = qpn_table_add(&fabric->qps, &qp);
            endpoint->channels[channel]->generations[generation].qpn = qp.qpn;
        }
    }
    pthread_mutex_unlock(&fabric->lock);
    return error;
}

/* Those of the slots are taken with the first one that is bound. */
static size_t slots_bytes(const struct udp_endpoint *endpoint)
{
    return endpoint->table.attr.slots * sizeof *endpoint->table.slots;
}

static int hold_slots(struct udp_endpoint *endpoint)
{
    if (endpoint->table.slots != NULL)
        return 0;
    struct rx_slot *slots = store_take(endpoint->table.attr.store, slots_bytes(endpoint));
    if (slots == NULL)
        return -LH_ENOMEM;
    rx_table_give_slots(&endpoint->table, slots);
    return 0;
}

void udp_slots_rest(struct fabric_endpoint *base)
{
    struct udp_endpoint *endpoint = udp_endpoint_of(base);
    store_give(endpoint->table.attr.store, rx_table_take_slots(&endpoint->table), slots_bytes(endpoint));
}

bool udp_takes_pieces(struct fabric_endpoint *base)
{
    struct rx_table *table = &udp_endpoint_of(base)->table;
    if (atomic_load(&table->partials) == NULL)
        atomic_store(&table->partials, store_try(table->attr.store, rx_partials_bytes(table)));
    return atomic_load(&table->partials) != NULL;
}

static int make_secrets(struct udp_endpoint *endpoint)
{
    int error = fabric_random(&endpoint->table.key_salt, sizeof endpoint->table.key_salt);
    if (error == 0)
        error = fabric_random(&endpoint->control_psn, sizeof endpoint->control_psn);
    if (error == 0)
        error = fabric_random(&endpoint->base.secret, sizeof endpoint->base.secret);
    endpoint->control_psn &= ROCE_PSN_MASK;
    return error;
}

static void count_endpoint(struct udp_fabric *fabric)
{
    pthread_mutex_lock(&fabric->lock);
    fabric->endpoints++;
    pthread_mutex_unlock(&fabric->lock);
}

int udp_endpoint_create(struct fabric *fabric, const struct fabric_endpoint_attr *attr,
                        struct fabric_endpoint **made)
{
    int error = endpoint_check_shape(attr);
    if (error == 0)
        error = check_mtu(attr->mtu_bytes);
    if (error == 0)
        error = endpoint_check_table(attr);
    if (error != 0)
        return error;
    struct udp_endpoint *endpoint = store_take_aligned(attr->store, endpoint_bytes(attr));
    if (endpoint == NULL)
        return -LH_ENOMEM;
    memset(endpoint, 0, endpoint_bytes(attr));
    endpoint->base.fabric = fabric;
    endpoint->table.attr = *attr;
    endpoint->control_gso = true;
    atomic_store_explicit(&endpoint->pace_bps, UINT64_MAX, memory_order_relaxed);
    count_endpoint((struct udp_fabric *)fabric);
    error = make_secrets(endpoint);
    if (error == 0)
        error = make_channels(endpoint);
    if (error == 0)
        error = add_qps(endpoint);
    if (error != 0) {
        udp_endpoint_destroy(&endpoint->base);
        return error;
    }
    *made = &endpoint->base;
    return 0;
}

/* Those that were added. Under the lock. */
static void remove_qps(struct udp_endpoint *endpoint)
{
    const struct fabric_endpoint_attr *attr = &endpoint->table.attr;
    struct qpn_table *qps = &udp_fabric_of(endpoint)->qps;
    qpn_table_remove(qps, endpoint->control_qpn);
    for (uint32_t channel = 0; channel < attr->channels; channel++)
        for (uint32_t generation = 0; endpoint->channels[channel] && generation < attr->generations;
             generation++)
            qpn_table_remove(qps, endpoint->channels[channel]->generations[generation].qpn);
}

/* Also of one that was made only in part. */
void udp_endpoint_destroy(struct fabric_endpoint *endpoint)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    struct udp_fabric *fabric = udp_fabric_of(udp);
    pthread_mutex_lock(&fabric->lock);
    remove_qps(udp);
    for (uint32_t i = 0; i < udp->table.attr.channels; i++)
        end_channel(udp->channels[i]);
    udp_demux_forget_early(udp);
    udp_inbox_clear(&fabric->control, &udp->control);
    fabric->endpoints--;
    pthread_mutex_unlock(&fabric->lock);
    struct store *store = udp->table.attr.store;
    store_give(store, udp->table.slots, slots_bytes(udp));
    store_give(store, atomic_load(&udp->table.partials), rx_partials_bytes(&udp->table));
    store_give(store, udp, endpoint_bytes(&udp->table.attr));
}

/*
 * How many payload bytes of full packets a socket with that buffer holds. The kernel charges the memory
 * that a packet occupies: a block of a power of two for headers and payload, and its bookkeeping (about 256
 * bytes), against twice the value that was asked for.
 */
static uint64_t usable_receive_bytes(uint64_t asked, uint32_t mtu_bytes)
{
    const uint64_t beside_payload = 512; /* link, IP, UDP and RoCE headers, headroom, shared info */
    const uint64_t bookkeeping = 256;
    uint64_t block = 512;
    while (block < mtu_bytes + beside_payload) /* at most 8192 */
        block *= 2;
    return 2 * asked / (block + bookkeeping) * mtu_bytes;
}

/* Of a port's receive buffer, what each peer may take for its own. As many endpoints as have direct sockets
 * have a buffer each. Of more, most are quiet at any time, and one that is not gets a direct socket before
 * long; so each is told the part that direct sockets for all would have if they shared the memory of those
 * there are. */
static uint64_t share_of_buffer(struct udp_fabric *fabric, const struct udp_port *port)
{
    pthread_mutex_lock(&fabric->lock);
    uint64_t endpoints = fabric->endpoints;
    uint64_t seats = port->seats_max > 0 ? port->seats_max : 1;
    pthread_mutex_unlock(&fabric->lock);
    uint64_t bytes = port->shared.receive_bytes;
    return endpoints <= seats ? bytes : bytes * seats / endpoints;
}

void udp_endpoint_info(struct fabric_endpoint *endpoint, struct qp_info_endpoint *info)
{
    const struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    struct udp_fabric *fabric = udp_fabric_of(udp);
    const struct fabric_endpoint_attr *attr = &udp->table.attr;
    *info = (struct qp_info_endpoint){
        .fabric = QP_INFO_UDP,
        .family = udp_address_is_ipv4(&fabric->local) ? 4 : 6,
        .channels = (uint8_t)attr->channels,
        .generations = (uint8_t)attr->generations,
        .control_qpn = udp->control_qpn,
        .control_port = fabric->front.port,
    };
    udp_address_bytes(&fabric->local, info->address);
    for (uint32_t i = 0; i < attr->channels; i++) {
        const struct udp_port *port = udp->channels[i]->port;
        info->channel_port[i] = port->shared.port;
        for (uint32_t generation = 0; generation < attr->generations; generation++)
            info->qpn[generation][i] = udp->channels[i]->generations[generation].qpn;
        info->receive_buffer_bytes += usable_receive_bytes(share_of_buffer(fabric, port), attr->mtu_bytes);
    }
}

int udp_slot_bind(struct fabric_endpoint *endpoint, uint32_t slot, const struct fabric_slot *what,
                  struct fabric_slot_key *key)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    const struct fabric_endpoint_attr *attr = &udp->table.attr;
    if (slot >= attr->slots)
        return lh_fail(LH_ERANGE, "slot %u: out of range (%u slots)", slot, attr->slots);
    if (what->length_bytes > attr->slot_bytes)
        return lh_fail(LH_ERANGE, "receive of %llu bytes: exceeds the slot size %llu",
                       (unsigned long long)what->length_bytes, (unsigned long long)attr->slot_bytes);
    if (what->generation >= attr->generations)
        return lh_fail(LH_ERANGE, "generation %u: out of range (%u generations)", what->generation,
                       attr->generations);
    int error = hold_slots(udp);
    if (error != 0)
        return error;
    if (udp->table.slots[slot].open)
        return lh_fail(LH_ESTATE, "slot %u is bound already", slot);
    rx_table_bind(&udp->table, slot, what, key);
    udp->open_count++;
    return 0;
}

void udp_slot_unbind(struct fabric_endpoint *endpoint, uint32_t slot)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    assert(slot < udp->table.attr.slots);
    udp->open_count -= udp->table.slots[slot].open;
    rx_table_unbind(&udp->table, slot);
    for (uint32_t i = 0; i < udp->table.attr.channels; i++)
        udp_rx_forget(udp->channels[i], slot);
}
