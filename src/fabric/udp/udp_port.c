/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/udp_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/error.h"
#include "fabric/fabric.h"
#include "fabric/udp/udp_socket.h"
#include "fabric/udp/udp_state.h"

/* ---- port ------------------------------------------------------------------------------------------ */

static int watch(const struct udp_fabric *fabric, struct udp_port *port, uint32_t index)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};
    if (epoll_ctl(fabric->readable, EPOLL_CTL_ADD, port->shared.fd, &event) == 0)
        return 0;
    return lh_fail(LH_ESYSTEM, "cannot watch a UDP socket: %s", strerror(errno));
}

static int open_port(struct udp_fabric *fabric, uint32_t index)
{
    struct udp_port *port = calloc(1, sizeof *port);
    if (port == NULL)
        return lh_fail(LH_ENOMEM, "no memory for the port of channel %u", index);
    port->slots_max = UDP_SOCKET_SLOTS_MAX;
    int error = udp_socket_open_shared(&fabric->local, fabric->receive_buffer_bytes, &port->shared);
    if (error != 0)
        goto free_port;
    error = watch(fabric, port, index);
    if (error == 0 && fabric->bypass != NULL)
        error = fabric->bypass->ops->open_port(fabric->bypass, port->shared.port);
    if (error != 0)
        goto close_socket;
    fabric->ports[index] = port;
    return 0;

close_socket:
    udp_socket_close(&port->shared);
free_port:
    free(port);
    return error;
}

int udp_ports_open(struct udp_fabric *fabric, uint32_t channels)
{
    for (uint32_t i = 0; i < channels; i++) {
        int error = fabric->ports[i] == NULL ? open_port(fabric, i) : 0;
        if (error != 0)
            return error;
    }
    return 0;
}

void udp_ports_close(struct udp_fabric *fabric)
{
    for (uint32_t i = 0; i < QP_INFO_CHANNELS_MAX; i++) {
        struct udp_port *port = fabric->ports[i];
        for (uint32_t socket_slot = 0; port != NULL && socket_slot < port->socket_slots.count;
             socket_slot++) {
            udp_socket_close(&port->direct[socket_slot]->socket);
            free(port->direct[socket_slot]);
        }
        if (port != NULL)
            udp_socket_close(&port->shared);
        free(port);
        fabric->ports[i] = NULL;
    }
}

/* Sockets of a port are never closed before all are: the kernel would renumber them. */
static uint32_t add_slot(struct udp_fabric *fabric, struct udp_port *port)
{
    if (port->socket_slots.count >= port->slots_max)
        return UDP_SOCKET_SLOTS_MAX;
    struct udp_direct *direct = malloc(sizeof *direct);
    if (direct == NULL)
        return UDP_SOCKET_SLOTS_MAX;
    memset(direct, 0, offsetof(struct udp_direct, waiting));
    if (udp_socket_open_direct(&fabric->local, port->shared.port, fabric->receive_buffer_bytes,
                               &direct->socket) != 0) {
        free(direct);
        port->slots_max = port->socket_slots.count; /* of descriptors, for example, there are no more */
        return UDP_SOCKET_SLOTS_MAX;
    }
    direct->socket_slot = port->socket_slots.count;
    direct->rate_bps = UINT64_MAX;
    port->direct[direct->socket_slot] = direct;
    udp_socket_slots_add(&port->socket_slots);
    return direct->socket_slot;
}

/* Has the kernel sort by the QPNs of all channels that have a socket slot, but for one that leaves. */
static int steer(const struct udp_port *port, const struct udp_channel *without)
{
    struct udp_steer entries[UDP_SOCKET_SLOTS_MAX];
    uint32_t count = 0;
    for (uint32_t socket_slot = 0; socket_slot < port->socket_slots.count; socket_slot++) {
        const struct udp_channel *channel = port->direct[socket_slot]->channel;
        if (channel == NULL || channel == without || channel->rx.leaving)
            continue;
        struct udp_steer *entry = &entries[count++];
        *entry =
            (struct udp_steer){.place = socket_slot + 1, .qpns = channel->endpoint->table.attr.generations};
        for (uint32_t g = 0; g < entry->qpns; g++)
            entry->qpn[g] = channel->generations[g].qpn;
    }
    return udp_steer_attach(port->shared.fd, entries, count);
}

/* Data of a hardware peer comes to the front, so all that comes here goes on being cut. */
static int attach_filter(const struct udp_channel *channel, const struct udp_direct *direct)
{
    const struct udp_endpoint *endpoint = channel->endpoint;
    const struct fabric_endpoint_attr *attr = &endpoint->table.attr;
    if (endpoint->peer.fabric != QP_INFO_UDP)
        return udp_filter_attach(direct->socket.fd, NULL);
    struct udp_filter_peer whole = {
        .address = endpoint->peer_address,
        .translated = endpoint->peer.translated,
        .seen_address = endpoint->seen_address,
        .sealed = endpoint->keys != NULL,
        .mtu_bytes = attr->mtu_bytes,
        .generations = attr->generations,
    };
    udp_address_set_port(&whole.address, channel->peer_port);
    for (uint32_t g = 0; g < attr->generations; g++)
        whole.qpn[g] = channel->generations[g].qpn;
    return udp_filter_attach(direct->socket.fd, &whole);
}

static void set_up(struct udp_channel *channel, struct udp_direct *direct)
{
    struct udp_rx *rx = &channel->rx;
    assert(!udp_arrivals_wait(&rx->arrivals));
    atomic_store_explicit(&direct->leave, false, memory_order_relaxed);
    atomic_store_explicit(&direct->kernel_drops, socket_drops(direct->socket.fd), memory_order_relaxed);
    rx->arrivals.waiting = direct->waiting;
    rx->arrivals.waiting_room = UDP_ARRIVALS_MAX;
    rx->shared_unread = true;
    rx->leaving = false;
    atomic_store_explicit(&channel->direct, direct, memory_order_release);
}

static void ask_to_leave(struct udp_port *port, lh_time now)
{
    uint32_t quiet = udp_socket_slots_sweep(&port->socket_slots, now);
    if (quiet == UDP_SOCKET_SLOTS_MAX)
        return;
    struct udp_direct *direct = port->direct[quiet];
    const struct fabric_endpoint_attr *attr = &direct->channel->endpoint->table.attr;
    atomic_store_explicit(&direct->leave, true, memory_order_relaxed);
    if (attr->wake != NULL)
        attr->wake(attr->wake_context, direct->channel->index);
}

void udp_port_promote(struct udp_channel *channel)
{
    struct udp_fabric *fabric = udp_fabric_of(channel->endpoint);
    struct udp_port *port = channel->port;
    lh_time now = fabric->base.ops->now(&fabric->base);
    uint32_t socket_slot = udp_socket_slots_free(&port->socket_slots, now);
    if (socket_slot == UDP_SOCKET_SLOTS_MAX)
        socket_slot = add_slot(fabric, port);
    if (socket_slot == UDP_SOCKET_SLOTS_MAX) {
        ask_to_leave(port, now);
        return;
    }
    struct udp_direct *direct = port->direct[socket_slot];
    udp_demux_drain(fabric, direct->socket.fd, channel->index); /* what came late for its former owner */
    if (attach_filter(channel, direct) != 0)
        return;
    direct->channel = channel;
    if (steer(port, NULL) != 0) {
        direct->channel = NULL;
        return;
    }
    udp_socket_slots_take(&port->socket_slots, socket_slot);
    set_up(channel, direct);
}

bool udp_port_begin_leave(struct udp_channel *channel)
{
    if (steer(channel->port, channel) != 0)
        return false;
    channel->rx.leaving = true;
    return true;
}

void udp_port_leave(struct udp_channel *channel)
{
    struct udp_fabric *fabric = udp_fabric_of(channel->endpoint);
    struct udp_direct *direct = udp_direct_of(channel);
    struct udp_rx *rx = &channel->rx;
    assert(direct != NULL && !udp_arrivals_wait(&rx->arrivals));
    (void)udp_filter_attach(direct->socket.fd, NULL); /* the next owner's replaces it in any case */
    atomic_store_explicit(&channel->direct, NULL, memory_order_release);
    direct->channel = NULL;
    rx->arrivals.waiting = NULL;
    rx->arrivals.waiting_room = 0;
    rx->leaving = false;
    udp_socket_slots_leave(&channel->port->socket_slots, direct->socket_slot,
                           fabric->base.ops->now(&fabric->base));
}

/* ---- connect --------------------------------------------------------------------------------------- */

/*
 * Learning who the peer is, and whether it can be reached from here at the MTU that was agreed
 * on.
 */

/* Hardware has no ports of its own that a packet could show. */
static int check_translation(const struct qp_info_endpoint *peer)
{
    if (!peer->translated || peer->fabric == QP_INFO_UDP)
        return 0;
    return lh_fail(LH_EADDR,
                   "RoCE hardware does not pass NAT (use a path without, or --device udp:ADDRESS)");
}

static int check_identity(const struct udp_endpoint *endpoint, const struct qp_info_endpoint *peer)
{
    if (endpoint->keys != NULL && peer->fabric == QP_INFO_VERBS)
        return lh_fail(LH_EHANDSHAKE,
                       "the peer is RoCE hardware, which does not encrypt data: use udp: there, or "
                       "--encryption auth on both sides where the network encrypts");
    bool ipv4 = udp_address_is_ipv4(&udp_fabric_of(endpoint)->local);
    if (peer->fabric != QP_INFO_UDP && peer->fabric != QP_INFO_VERBS)
        return lh_fail(LH_EHANDSHAKE,
                       "peer fabric %u: unsupported (udp connects to udp (%u) and verbs (%u))",
                       peer->fabric, QP_INFO_UDP, QP_INFO_VERBS);
    if (peer->family != (ipv4 ? 4 : 6))
        return lh_fail(
            LH_EADDR,
            "address family mismatch: peer IPv%u, this side IPv%u (open both devices with the same family)",
            peer->family, ipv4 ? 4 : 6);
    return endpoint_check_peer(&endpoint->table.attr, peer);
}

static int check_numbers(const struct qp_info_endpoint *peer)
{
    bool valid = endpoint_check_qpns(peer) && peer->control_port != 0;
    for (uint32_t channel = 0; channel < peer->channels; channel++)
        valid = valid && peer->channel_port[channel] != 0;
    if (!valid)
        return lh_fail(LH_EHANDSHAKE,
                       "UDP port or QP number of the peer: out of range (port from 1, QP 1 to 0xFFFFFF)");
    return 0;
}

/* Hardware sends to one port only, and ignores that we might have another. */
static int check_front(const struct udp_fabric *fabric, const struct qp_info_endpoint *peer)
{
    if (peer->fabric != QP_INFO_VERBS || fabric->front.port == ROCE_UDP_PORT)
        return 0;
    char text[UDP_ADDRESS_TEXT_MAX];
    return lh_fail(
        LH_EADDR,
        "the peer is RoCE hardware, which sends to UDP port %u of %s only, and another process holds that: "
        "find it with \"ss -ulpn sport = :%u\" and stop it (or unload rdma_rxe), or use another address",
        ROCE_UDP_PORT, udp_address_format(&fabric->local, text), ROCE_UDP_PORT);
}

static int check_mtu(const struct udp_endpoint *endpoint, const union udp_address *peer)
{
    const struct udp_fabric *fabric = udp_fabric_of(endpoint);
    uint32_t mtu_bytes = endpoint->table.attr.mtu_bytes;
    uint32_t path_bytes;
    int error = udp_path_mtu(&fabric->local, peer, &path_bytes);
    if (error != 0)
        return error;
    uint32_t overhead =
        udp_address_is_ipv4(&fabric->local) ? ROCE_WRITE_IMM_OVERHEAD_V4 : ROCE_WRITE_IMM_OVERHEAD_V6;
    overhead += endpoint->keys != NULL ? ROCE_SEALED_EXTRA : 0;
    if (mtu_bytes + overhead <= path_bytes)
        return 0;
    uint32_t fits = roce_payload_for(path_bytes, overhead);
    char text[UDP_ADDRESS_TEXT_MAX];
    udp_address_format(peer, text);
    if (fits == 0)
        return lh_fail(
            LH_EMTU, "the path to %s takes IP packets of %u bytes, and the smallest RoCE MTU (%u) needs %u",
            text, path_bytes, ROCE_MTU_MIN, ROCE_MTU_MIN + overhead);
    return lh_fail(
        LH_EMTU,
        "an MTU of %u needs IP packets of %u bytes, and the path to %s takes %u; the largest MTU that "
        "fits is %u",
        mtu_bytes, mtu_bytes + overhead, text, path_bytes, fits);
}

static void connect_channel(struct udp_channel *channel, const struct qp_info_endpoint *peer)
{
    const struct udp_endpoint *endpoint = channel->endpoint;
    const struct udp_fabric *fabric = udp_fabric_of(endpoint);
    bool hardware = peer->fabric == QP_INFO_VERBS;
    uint16_t there = hardware ? ROCE_UDP_PORT : peer->channel_port[channel->index];
    channel->peer_port = peer->channel_port[channel->index];
    for (uint32_t generation = 0; generation < peer->generations; generation++)
        channel->generations[generation].peer_qpn = peer->qpn[generation][channel->index];
    uint16_t here = hardware ? fabric->front.port : channel->port->shared.port;

    struct udp_tx *tx = &channel->tx;
    tx->to = endpoint->peer_address;
    udp_address_set_port(&tx->to, there);
    tx->flow.ipv4 = udp_address_is_ipv4(&fabric->local);
    udp_address_bytes(&fabric->local, tx->flow.source);
    udp_address_bytes(&endpoint->peer_address, tx->flow.destination);
    tx->flow.source_port = channel->port->shared.port;
    tx->flow.destination_port = there;
    tx->prefix = (struct udp_prefix){0};

    struct udp_rx *rx = &channel->rx;
    rx->flow.ipv4 = tx->flow.ipv4;
    udp_address_bytes(&endpoint->peer_address, rx->flow.source);
    udp_address_bytes(&fabric->local, rx->flow.destination);
    rx->flow.source_port = there;
    rx->flow.destination_port = here;
    rx->prefix = (struct udp_prefix){0};
}

int udp_endpoint_connect(struct fabric_endpoint *endpoint, const struct qp_info_endpoint *peer)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    struct udp_fabric *fabric = udp_fabric_of(udp);
    if (udp->connected)
        return lh_fail(LH_ESTATE, "endpoint is already connected");
    int error = check_identity(udp, peer);
    if (error == 0)
        error = check_numbers(peer);
    if (error == 0)
        error = check_translation(peer);
    if (error == 0)
        error = check_front(fabric, peer);
    if (error != 0)
        return error;
    union udp_address address =
        udp_address_make(peer->family, peer->address, peer->control_port, &fabric->local);
    union udp_address seen = address;
    if (peer->translated)
        seen = udp_address_make(peer->family, peer->seen_address, peer->control_port, &fabric->local);
    error = check_mtu(udp, &address);
    if (error == -LH_EADDR && peer->translated) /* its own address leads nowhere from here */
        error = check_mtu(udp, &seen);
    if (error != 0)
        return error;
    udp_address_set_port(&address, 0);
    udp_address_set_port(&seen, 0);
    /* Another endpoint's control_poll may read this one at any time. */
    pthread_mutex_lock(&fabric->lock);
    udp->peer = (struct udp_peer){
        .fabric = peer->fabric,
        .generations = peer->generations,
        .translated = peer->translated,
        .control_port = peer->control_port,
        .control_qpn = peer->control_qpn,
        .proof = peer->proof,
    };
    udp->peer_address = address;
    udp->seen_address = seen;
    for (uint32_t i = 0; i < udp->table.attr.channels; i++)
        connect_channel(udp->channels[i], peer);
    udp_demux_forget_early(udp);
    udp->connected = true;
    for (uint32_t i = 0; i < udp->table.attr.channels; i++)
        udp_port_promote(udp->channels[i]);
    pthread_mutex_unlock(&fabric->lock);
    return 0;
}
