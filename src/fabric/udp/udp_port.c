/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/port.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/error.h"
#include "fabric/socket_drops.h"
#include "fabric/udp/demux.h"
#include "fabric/udp/filter.h"

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
    port->seats_max = UDP_SEATS_MAX;
    int error = udp_socket_open_shared(&fabric->local, fabric->receive_buffer_bytes, &port->shared);
    if (error != 0)
        goto free_port;
    error = watch(fabric, port, index);
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
        for (uint32_t seat = 0; port != NULL && seat < port->seats.count; seat++) {
            udp_socket_close(&port->direct[seat]->socket);
            free(port->direct[seat]);
        }
        if (port != NULL)
            udp_socket_close(&port->shared);
        free(port);
        fabric->ports[i] = NULL;
    }
}

/* Sockets of a port are never closed before all are: the kernel would renumber them. */
static uint32_t add_seat(struct udp_fabric *fabric, struct udp_port *port)
{
    if (port->seats.count >= port->seats_max)
        return UDP_SEATS_MAX;
    struct udp_direct *direct = malloc(sizeof *direct);
    if (direct == NULL)
        return UDP_SEATS_MAX;
    memset(direct, 0, offsetof(struct udp_direct, waiting));
    if (udp_socket_open_direct(&fabric->local, port->shared.port, fabric->receive_buffer_bytes,
                               &direct->socket) != 0) {
        free(direct);
        port->seats_max = port->seats.count; /* of descriptors, for example, there are no more */
        return UDP_SEATS_MAX;
    }
    direct->seat = port->seats.count;
    direct->rate_bps = UINT64_MAX;
    port->direct[direct->seat] = direct;
    udp_seats_add(&port->seats);
    return direct->seat;
}

/* Has the kernel sort by the QPNs of all channels that have a seat, but for one that leaves. */
static int steer(const struct udp_port *port, const struct udp_channel *without)
{
    struct udp_steer entries[UDP_SEATS_MAX];
    uint32_t count = 0;
    for (uint32_t seat = 0; seat < port->seats.count; seat++) {
        const struct udp_channel *channel = port->direct[seat]->channel;
        if (channel == NULL || channel == without || channel->rx.leaving)
            continue;
        struct udp_steer *entry = &entries[count++];
        *entry = (struct udp_steer){.place = seat + 1, .qpns = channel->endpoint->table.attr.generations};
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
    uint32_t quiet = udp_seats_sweep(&port->seats, now);
    if (quiet == UDP_SEATS_MAX)
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
    uint32_t seat = udp_seats_free(&port->seats, now);
    if (seat == UDP_SEATS_MAX)
        seat = add_seat(fabric, port);
    if (seat == UDP_SEATS_MAX) {
        ask_to_leave(port, now);
        return;
    }
    struct udp_direct *direct = port->direct[seat];
    udp_demux_drain(fabric, direct->socket.fd, channel->index); /* what came late for its former owner */
    if (attach_filter(channel, direct) != 0)
        return;
    direct->channel = channel;
    if (steer(port, NULL) != 0) {
        direct->channel = NULL;
        return;
    }
    udp_seats_take(&port->seats, seat);
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
    udp_seats_leave(&channel->port->seats, direct->seat, fabric->base.ops->now(&fabric->base));
}
