/*
 * udp_endpoint.c - creation and end of an endpoint, its slots.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/min_max.h"
#include "fabric/fabric.h"
#include "fabric/udp/udp_address.h"
#include "fabric/udp/udp_parts.h"
#include "fabric/udp/udp_state.h"
#include "store/store.h"

/* ---- endpoint -------------------------------------------------------------------------------------- */

/* Creation and end of an endpoint: its channels, its queue pair numbers, its slots. */

#define CACHE_LINE_BYTES 64u

/* A full packet then needs no padding, so that its place in a burst is known beforehand. */
static int check_mtu(const struct udp_fabric *fabric, uint32_t mtu_bytes)
{
    if (!roce_payload_is_valid(mtu_bytes))
        return lh_fail(LH_EMTU, "MTU %u: invalid (use a multiple of %u up to %u)", mtu_bytes,
                       ROCE_PAYLOAD_STEP, ROCE_PAYLOAD_MAX);
    if (fabric->bypass != NULL && mtu_bytes > fabric->bypass->payload_max)
        return lh_fail(LH_EMTU,
                       "MTU %u: packets exceed a frame of the AF_XDP socket (use --mtu %u, or udp:ADDRESS)",
                       mtu_bytes, fabric->bypass->payload_max);
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

static void udp_slots_idle(struct fabric_endpoint *base)
{
    struct udp_endpoint *endpoint = udp_endpoint_of(base);
    store_give(endpoint->table.attr.store, rx_table_take_slots(&endpoint->table), slots_bytes(endpoint));
}

static bool udp_takes_pieces(struct fabric_endpoint *base)
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

static int udp_secure(struct fabric_endpoint *base, const struct fabric_secret *secret)
{
    struct udp_endpoint *endpoint = udp_endpoint_of(base);
    const struct udp_fabric *fabric = udp_fabric_of(endpoint);
    const struct fabric_endpoint_attr *attr = &endpoint->table.attr;
    struct udp_keys *keys;
    assert(!endpoint->connected && endpoint->keys == NULL);
    if (fabric->bypass != NULL && attr->mtu_bytes + ROCE_SEALED_EXTRA > fabric->bypass->payload_max)
        return lh_fail(LH_EMTU,
                       "MTU %u: encrypted packets exceed a frame of the AF_XDP socket (use --mtu %u, or "
                       "udp:ADDRESS)",
                       attr->mtu_bytes, fabric->bypass->payload_max - ROCE_PAYLOAD_STEP);
    int error = udp_keys_create(attr->store, attr->channels, secret, &keys);
    if (error != 0)
        return error;
    /* Another endpoint's control_poll may look at this one at any time. */
    pthread_mutex_lock(&udp_fabric_of(endpoint)->lock);
    endpoint->keys = keys;
    pthread_mutex_unlock(&udp_fabric_of(endpoint)->lock);
    return 0;
}

static void count_endpoint(struct udp_fabric *fabric)
{
    pthread_mutex_lock(&fabric->lock);
    fabric->endpoints++;
    pthread_mutex_unlock(&fabric->lock);
}

static void udp_endpoint_destroy(struct fabric_endpoint *endpoint);

static int udp_endpoint_create(struct fabric *fabric, const struct fabric_endpoint_attr *attr,
                               struct fabric_endpoint **made)
{
    int error = endpoint_check_shape(attr);
    if (error == 0)
        error = check_mtu((const struct udp_fabric *)fabric, attr->mtu_bytes);
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
static void udp_endpoint_destroy(struct fabric_endpoint *endpoint)
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
    udp_keys_free(store, udp->keys);
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
    while (block < mtu_bytes + beside_payload) /* at most 16,384 */
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
    uint64_t socket_slots = port->slots_max > 0 ? port->slots_max : 1;
    pthread_mutex_unlock(&fabric->lock);
    uint64_t bytes = port->shared.receive_bytes;
    return endpoints <= socket_slots ? bytes : bytes * socket_slots / endpoints;
}

/* What comes by a bypass waits in its buffers, which all channels share. */
static uint64_t receive_bytes(struct udp_fabric *fabric, const struct udp_endpoint *endpoint)
{
    const struct fabric_endpoint_attr *attr = &endpoint->table.attr;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < attr->channels; i++)
        bytes +=
            usable_receive_bytes(share_of_buffer(fabric, endpoint->channels[i]->port), attr->mtu_bytes);
    if (fabric->bypass == NULL)
        return bytes;
    pthread_mutex_lock(&fabric->lock);
    uint64_t bypass_bytes = (uint64_t)fabric->bypass->receive_packets * attr->mtu_bytes / fabric->endpoints;
    pthread_mutex_unlock(&fabric->lock);
    return lh_min(bytes, bypass_bytes);
}

static void udp_endpoint_info(struct fabric_endpoint *endpoint, struct qp_info_endpoint *info)
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
    }
    info->receive_buffer_bytes = receive_bytes(fabric, udp);
}

static int udp_slot_bind(struct fabric_endpoint *endpoint, uint32_t slot, const struct fabric_slot *what,
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
        return lh_fail(LH_ESTATE, "slot %u is already bound", slot);
    rx_table_bind(&udp->table, slot, what, key);
    udp->open_count++;
    return 0;
}

static void udp_slot_unbind(struct fabric_endpoint *endpoint, uint32_t slot)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    assert(slot < udp->table.attr.slots);
    udp->open_count -= udp->table.slots[slot].open;
    rx_table_unbind(&udp->table, slot);
    for (uint32_t i = 0; i < udp->table.attr.channels; i++)
        udp_rx_forget(udp->channels[i], slot);
}

/* ---- udp ------------------------------------------------------------------------------------------- */

/* Small receive buffers only cost speed and losses, so this is no error; but the user gets a warning. */
static void warn_of_small_buffer(struct udp_fabric *fabric)
{
    uint64_t asked = fabric->receive_buffer_bytes;
    uint64_t granted = fabric->front.receive_bytes;
    if (granted >= asked)
        return;
    snprintf(fabric->warning, sizeof fabric->warning,
             "receive buffers: %llu bytes requested, %llu granted by the kernel; bursts may be lost "
             "(sysctl -w net.core.rmem_max=%llu)",
             (unsigned long long)asked, (unsigned long long)granted, (unsigned long long)asked);
}

int udp_fabric_open(const union udp_address *local, uint64_t receive_buffer_bytes,
                    struct udp_bypass *bypass, struct fabric **made)
{
    struct udp_fabric *fabric = calloc(1, sizeof *fabric);
    if (fabric == NULL)
        return lh_fail(LH_ENOMEM, "no memory for a fabric");
    fabric->base.ops = &fabric_udp_ops;
    fabric->local = *local;
    fabric->bypass = bypass;
    fabric->receive_buffer_bytes =
        receive_buffer_bytes != 0 ? receive_buffer_bytes : FABRIC_RECEIVE_BUFFER_DEFAULT;
    if (fabric->receive_buffer_bytes > UDP_SOCKET_BUFFER_MAX)
        fabric->receive_buffer_bytes = UDP_SOCKET_BUFFER_MAX;
    int error = udp_socket_open_front(local, fabric->receive_buffer_bytes, &fabric->front);
    if (error != 0)
        goto free_fabric;
    error = udp_demux_open(fabric);
    if (error != 0)
        goto close_front;
    warn_of_small_buffer(fabric);
    *made = &fabric->base;
    return 0;

close_front:
    udp_socket_close(&fabric->front);
free_fabric:
    free(fabric);
    return error;
}

static int open_udp(const struct fabric_attr *attr, struct fabric **made)
{
    union udp_address local;
    int error = udp_address_parse(attr->address, &local);
    return error != 0 ? error : udp_fabric_open(&local, attr->receive_buffer_bytes, NULL, made);
}

static void close_udp(struct fabric *fabric)
{
    struct udp_fabric *udp = (struct udp_fabric *)fabric;
    if (udp->bypass != NULL)
        udp->bypass->ops->close(udp->bypass);
    udp_ports_close(udp);
    udp_demux_close(udp);
    udp_socket_close(&udp->front);
    free(udp);
}

static lh_time now(struct fabric *fabric)
{
    (void)fabric;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (lh_time)time.tv_sec * LH_NS_PER_S + (lh_time)time.tv_nsec;
}

static uint32_t poll_fds(struct fabric_endpoint *endpoint, uint32_t channel, int *fds)
{
    const struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    const struct udp_bypass *bypass = udp_fabric_of(udp)->bypass;
    fds[0] =
        channel == FABRIC_CONTROL ? udp_fabric_of(udp)->front.fd : udp_channel_fd(udp->channels[channel]);
    if (channel == FABRIC_CONTROL || bypass == NULL)
        return 1;
    fds[1] = bypass->fd;
    return 2;
}

static lh_time arrived(struct fabric_endpoint *endpoint, uint32_t channel)
{
    int fds[FABRIC_POLL_FDS_MAX];
    if (poll_fds(endpoint, channel, fds) > 1) /* a bypass knows no time */
        return 0;
    lh_time ago_ns = udp_socket_ago(fds[0]);
    return ago_ns != 0 ? now(endpoint->fabric) - ago_ns : 0;
}

static const char *warning(struct fabric *fabric)
{
    const struct udp_fabric *udp = (const struct udp_fabric *)fabric;
    const struct udp_bypass *bypass = udp->bypass;
    const char *of_bypass = bypass != NULL ? bypass->ops->warning(bypass) : NULL;
    if (of_bypass != NULL)
        return of_bypass;
    return udp->warning[0] != '\0' ? udp->warning : NULL;
}

const struct fabric_ops fabric_udp_ops = {
    .name = "udp",
    .devices = udp_devices,
    .open = open_udp,
    .close = close_udp,
    .now = now,
    .endpoint_create = udp_endpoint_create,
    .endpoint_destroy = udp_endpoint_destroy,
    .endpoint_info = udp_endpoint_info,
    .secure = udp_secure,
    .endpoint_connect = udp_endpoint_connect,
    .peer_traits = endpoint_peer_traits,
    .outruns_path = true,
    .local_is_direct = true,
    .punch = udp_punch,
    .slot_bind = udp_slot_bind,
    .slot_unbind = udp_slot_unbind,
    .slots_idle = udp_slots_idle,
    .post_writes = udp_post_writes,
    .pace = udp_pace,
    .poll = udp_poll,
    .arrived = arrived,
    .bundles_control = true,
    .long_control = true,
    .takes_pieces = udp_takes_pieces,
    .control_send = udp_control_send,
    .control_poll = udp_control_poll,
    .control_proven = udp_control_proven,
    .poll_fds = poll_fds,
    .count_drops = udp_count_drops,
    .warning = warning,
    .shared_poll = udp_shared_poll,
};
