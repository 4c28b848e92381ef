/*
 * rx.c - receiving data packets: each message of the kernel goes straight to where its packets are expected
 * to belong (placement.c), and is validated there (validate.c).
 *
 * A poll reads a second message only when every packet before it in this poll was in its speculative place:
 * then the places go on behind them (see placement.h) and cannot hit a place that was received but whose bit
 * is not set yet.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/rx.h"

#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "base/error.h"
#include "fabric/socket_drops.h"
#include "fabric/udp/cnp.h"
#include "fabric/udp/demux.h"
#include "fabric/udp/tx.h"
#include "fabric/udp/validate.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

/* Messages that one poll reads at most, so that a flood of garbage cannot hold it. */
#define MESSAGES_MAX 16u
/* Least that the kernel books for a message (struct sk_buff and what it shares), of twice what was asked. */
#define MESSAGE_BOOKED_BYTES 512u

static struct lh_stats *stats_of(const struct udp_channel *channel)
{
    return channel->endpoint->table.attr.stats;
}

/* The number that the socket has dropped so far. Whoever advances it counts the difference; a message shows
 * of the moment at which it was queued, which may be long ago. */
static void note_drops(struct udp_channel *channel, uint32_t drops)
{
    uint32_t counted = atomic_load_explicit(&channel->rx.kernel_drops, memory_order_relaxed);
    while ((int32_t)(drops - counted) > 0) /* until nobody is in between: readers are few */
        if (atomic_compare_exchange_weak_explicit(&channel->rx.kernel_drops, &counted, drops,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            fabric_count(stats_of(channel), rx_socket_drops, drops - counted);
            return;
        }
}

void udp_count_drops(struct fabric_endpoint *endpoint)
{
    const struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    for (uint32_t i = 0; i < udp->table.attr.channels; i++)
        note_drops(udp->channels[i], socket_drops(udp->channels[i]->socket.fd));
}

/* Reads the kernel's control data of a message: the size of its packets, their mark, and the number that it
 * dropped so far. */
static uint32_t read_control(struct udp_channel *channel, struct msghdr *header, uint32_t bytes,
                             bool *marked)
{
    uint32_t segment_bytes = bytes;
    *marked = false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c != NULL; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int size;
            memcpy(&size, CMSG_DATA(c), sizeof size);
            if (size > 0)
                segment_bytes = (uint32_t)size;
        } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
            uint32_t drops;
            memcpy(&drops, CMSG_DATA(c), sizeof drops);
            note_drops(channel, drops);
        } else if (udp_cmsg_is_marked(c)) {
            *marked = true;
        }
    }
    return segment_bytes;
}

/* Whether a packet from there can be the peer's. Hardware chooses source ports as it likes, and the port
 * enters the iCRC; NAT chooses one, and the iCRC has that of the sender. */
static bool source_is_peer(struct udp_channel *channel, const union udp_address *from)
{
    const struct udp_endpoint *endpoint = channel->endpoint;
    uint16_t port = udp_address_port(from);
    bool hardware = endpoint->peer.fabric != QP_INFO_UDP;
    if (endpoint->peer.translated && udp_address_same_host(from, &endpoint->seen_address))
        return true;
    if (!udp_address_same_host(from, &endpoint->peer_address))
        return false;
    if (hardware)
        channel->rx.flow.source_port = port;
    return hardware || port == endpoint->peer.channel_port[channel->index];
}

/* The last message was marked. What is not the peer's proves nothing of the path. */
static void count_marked(const struct udp_channel *channel)
{
    if (channel->rx.proven > 0)
        fabric_count(stats_of(channel), rx_marked_packets, channel->rx.proven);
}

enum received {
    RECEIVED_NOTHING,
    RECEIVED_AS_GUESSED,
    RECEIVED_OTHERWISE,
};

static int on_receive_error(const struct udp_channel *channel, int error)
{
    /* An error that the network reports belongs to no packet of ours: loss is no news here. */
    if (error == EAGAIN || error == EWOULDBLOCK || error == EINTR || udp_send_error_is_loss(error) ||
        error == ENOMEM || error == ENOBUFS)
        return RECEIVED_NOTHING;
    if (error == EFAULT)
        return lh_fail(LH_EDEVICE,
                       "posted receive buffer not writable (it must stay mapped until completion)");
    return lh_fail(LH_EDEVICE, "cannot receive on UDP port %u: %s", channel->socket.port, strerror(error));
}

/* Reads one message of the kernel. An enum received, or a negative error. */
static int receive_message(struct udp_channel *channel)
{
    struct udp_endpoint *endpoint = channel->endpoint;
    struct udp_rx *rx = &channel->rx;
    /* GRO's segment size, the drops, the traffic class. */
    _Alignas(struct cmsghdr) uint8_t control[3 * CMSG_SPACE(sizeof(int))];
    rx->scatter.place_count =
        placement_list(&rx->placement, &endpoint->table, endpoint->open, rx->scatter.places,
                       udp_scatter_places_max(rx->scatter.mtu_bytes));
    struct msghdr header = {
        .msg_name = &rx->from,
        .msg_namelen = sizeof rx->from,
        .msg_iov = rx->scatter.iov,
        .msg_iovlen = udp_scatter_lay_out(&rx->scatter),
        .msg_control = control,
        .msg_controllen = sizeof control,
    };
    ssize_t got = recvmsg(channel->socket.fd, &header, MSG_DONTWAIT);
    if (got < 0)
        return on_receive_error(channel, errno);
    uint32_t bytes = (uint32_t)got;
    bool marked;
    uint32_t segment_bytes = read_control(channel, &header, bytes, &marked);
    if (bytes == 0) {
        fabric_count(stats_of(channel), bad_header, 1);
        return RECEIVED_OTHERWISE;
    }
    if (!source_is_peer(channel, &rx->from)) {
        fabric_count(stats_of(channel), bad_source, (bytes + segment_bytes - 1) / segment_bytes);
        return RECEIVED_OTHERWISE;
    }
    bool guessed = udp_take_message(channel, &rx->scatter, bytes, segment_bytes);
    if (marked)
        count_marked(channel);
    return guessed ? RECEIVED_AS_GUESSED : RECEIVED_OTHERWISE;
}

static uint32_t hand_out(struct udp_rx *rx, struct fabric_arrival *arrivals, uint32_t room)
{
    uint32_t waiting = rx->ready_count - rx->ready_next;
    uint32_t count = waiting < room ? waiting : room;
    memcpy(arrivals, rx->ready + rx->ready_next, count * sizeof *arrivals);
    rx->ready_next += count;
    if (rx->ready_next == rx->ready_count)
        rx->ready_next = rx->ready_count = 0;
    return count;
}

/* Judges one packet that a hardware peer sent to the front socket. */
static void take_from_inbox(struct udp_channel *channel, struct udp_inbox_packet *packet)
{
    struct udp_rx *rx = &channel->rx;
    if (!source_is_peer(channel, &packet->from)) {
        fabric_count(stats_of(channel), bad_source, 1);
        return;
    }
    /* The message of the inbox is one packet without speculative places, "staged" where it lies. */
    rx->scatter.place_count = 0;
    rx->scatter.staging = packet->data;
    udp_take_message(channel, &rx->scatter, packet->bytes, packet->bytes);
    rx->scatter.staging = rx->staging;
    if (!packet->marked)
        return;
    count_marked(channel);
    if (rx->ready_count > 0)
        udp_cnp_on_marked(channel, rx->ready[rx->ready_count - 1].generation);
}

static uint32_t poll_inbox(struct udp_channel *channel, struct fabric_arrival *arrivals, uint32_t count)
{
    uint32_t taken = 0;
    udp_demux_try(channel->endpoint);
    for (uint32_t i = 0; i < UDP_INBOX_PACKETS && taken < count; i++) {
        struct udp_inbox_packet *packet = udp_inbox_peek(channel->inbox);
        if (packet == NULL)
            break;
        take_from_inbox(channel, packet);
        udp_inbox_drop(channel->inbox);
        taken += hand_out(&channel->rx, arrivals + taken, count - taken);
    }
    return taken;
}

/* The result of a poll that took nothing. Messages that were dropped may hide good ones behind them (late
 * parity does). Not for ever: what had waited in the socket when that began was read after as many as it
 * can hold. */
static int nothing_taken(struct udp_channel *channel, uint32_t dropped)
{
    struct udp_rx *rx = &channel->rx;
    rx->dropped_since += dropped;
    if (dropped == MESSAGES_MAX &&
        rx->dropped_since < 2 * channel->socket.receive_bytes / MESSAGE_BOOKED_BYTES)
        return FABRIC_POLL_AGAIN;
    rx->dropped_since = 0;
    return 0;
}

int udp_poll(struct fabric_endpoint *endpoint, uint32_t index, struct fabric_arrival *arrivals,
             uint32_t count)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    assert(index < udp->table.attr.channels);
    struct udp_channel *channel = udp->channels[index];
    struct udp_rx *rx = &channel->rx;
    if (!udp->connected || count == 0)
        return 0;
    /* The bits of these are set only when they were returned, so speculative placement must wait for the
     * next poll. */
    uint32_t taken = hand_out(rx, arrivals, count);
    if (taken == 0 && channel->inbox != NULL)
        taken = poll_inbox(channel, arrivals, count);
    if (taken > 0)
        return (int)taken;

    placement_on_poll(&rx->placement);
    const uint32_t expected = udp_scatter_places_max(rx->scatter.mtu_bytes);
    uint32_t messages = 0;
    while (messages < MESSAGES_MAX) {
        int received = receive_message(channel);
        if (received < 0)
            return taken > 0 ? (int)taken : received;
        taken += hand_out(rx, arrivals + taken, count - taken);
        if (received == RECEIVED_NOTHING || (received == RECEIVED_OTHERWISE && taken > 0))
            break;
        messages++;
        if (rx->ready_count > 0 || count - taken < expected)
            break;
    }
    if (taken == 0)
        return nothing_taken(channel, messages);
    rx->dropped_since = 0;
    return (int)taken;
}

void udp_rx_forget(struct udp_channel *channel, uint32_t slot)
{
    struct udp_rx *rx = &channel->rx;
    struct immediate_split split = channel->endpoint->table.attr.split;
    uint32_t kept = rx->ready_next;
    for (uint32_t i = rx->ready_next; i < rx->ready_count; i++) {
        if (immediate_part(split, rx->ready[i].immediate).message != slot)
            rx->ready[kept++] = rx->ready[i];
        else
            fabric_count(stats_of(channel), rx_late_packets, 1);
    }
    rx->ready_count = kept;
    if (rx->ready_next == rx->ready_count)
        rx->ready_next = rx->ready_count = 0;
}
