/*
 * udp_rx.c - receiving data packets. A direct socket is read message by message, each into the same
 * memory, which so stays in the caches, and validated there (udp_demux.c). What came to a socket that
 * several endpoints share (udp_demux.c) waits in the channel's inbox, and is validated there. From either
 * place a payload is copied once, to where it belongs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/udp_parts.h"

#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/min_max.h"
#include "fabric/fabric.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

/* Messages that one poll reads at most, so that a flood of garbage cannot hold it. */
#define MESSAGES_MAX 16u
/* Least that the kernel books for a message (struct sk_buff and what it shares), of twice what was asked. */
#define MESSAGE_BOOKED_BYTES 512u
/* Packets of an inbox that one poll judges at most. */
#define INBOX_MAX 256u
/* Packets that come by way of the inbox before a direct socket is worth its while. */
#define PROMOTE_PACKETS 64u
/* Empty polls of a direct socket before the shared one is read, too: who else does is unknown. */
#define SHARED_EVERY 16u
/* Polls of a direct socket while no receive is posted, of which one reads it: each is a system call, on the
 * way of every message in control datagrams. */
#define IDLE_EVERY 16u
/* Empty polls of a bypass of which one reads the sockets, too. */
#define SOCKETS_EVERY 16u

static struct lh_stats *stats_of(const struct udp_channel *channel)
{
    return channel->endpoint->table.attr.stats;
}

/* The number that the socket has dropped so far. Whoever advances it counts the difference; a message shows
 * of the moment at which it was queued, which may be long ago. */
static uint32_t note_drops(_Atomic uint32_t *counter, uint32_t drops)
{
    uint32_t counted = atomic_load_explicit(counter, memory_order_relaxed);
    while ((int32_t)(drops - counted) > 0) /* until nobody is in between: readers are few */
        if (atomic_compare_exchange_weak_explicit(counter, &counted, drops, memory_order_relaxed,
                                                  memory_order_relaxed))
            return drops - counted;
    return 0;
}

/* What the shared socket dropped may be anybody's: all count it to whom something came through it lately. */
static void count_drops(struct udp_channel *channel)
{
    struct udp_rx *rx = &channel->rx;
    struct udp_direct *direct = udp_direct_of(channel);
    uint32_t drops = 0;
    if (direct != NULL)
        drops = note_drops(&direct->kernel_drops, socket_drops(direct->socket.fd));
    uint32_t shared = note_drops(&rx->shared_drops, socket_drops(channel->port->shared.fd));
    if (atomic_exchange_explicit(&rx->was_shared, false, memory_order_relaxed))
        drops += shared;
    if (drops > 0)
        fabric_count(stats_of(channel), rx_socket_drops, drops);
}

/* Whoever finds them counts them: they may be anybody's. */
static void count_bypass_drops(struct udp_fabric *fabric, struct lh_stats *stats)
{
    struct udp_bypass *bypass = fabric->bypass;
    uint32_t drops = bypass != NULL ? note_drops(&fabric->bypass_drops, bypass->ops->drops(bypass)) : 0;
    if (drops > 0)
        fabric_count(stats, rx_socket_drops, drops);
}

void udp_count_drops(struct fabric_endpoint *endpoint)
{
    const struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    for (uint32_t i = 0; i < udp->table.attr.channels; i++)
        count_drops(udp->channels[i]);
    count_bypass_drops(udp_fabric_of(udp), udp->table.attr.stats);
    udp_count_strays(udp_fabric_of(udp), udp->table.attr.stats);
}

/* Reads the kernel's control data of a message: the size of its packets, their mark, and the number that it
 * dropped so far. */
static uint32_t read_control(struct udp_channel *channel, struct udp_direct *direct, struct msghdr *header,
                             uint32_t bytes)
{
    uint32_t segment_bytes = bytes;
    channel->rx.marked = false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c != NULL; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int size;
            memcpy(&size, CMSG_DATA(c), sizeof size);
            if (size > 0)
                segment_bytes = (uint32_t)size;
        } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
            uint32_t drops;
            memcpy(&drops, CMSG_DATA(c), sizeof drops);
            uint32_t fresh = note_drops(&direct->kernel_drops, drops);
            if (fresh > 0)
                fabric_count(stats_of(channel), rx_socket_drops, fresh);
        } else if (udp_cmsg_is_marked(c)) {
            channel->rx.marked = true;
        }
    }
    return segment_bytes;
}

/* Hardware chooses source ports as it likes, and the port enters the iCRC; NAT chooses one, and the iCRC has
 * that of the sender. */
static bool note_peer(struct udp_channel *channel, const union udp_address *from)
{
    const struct udp_endpoint *endpoint = channel->endpoint;
    if (!udp_source_is_peer(endpoint, channel->index, from))
        return false;
    if (endpoint->peer.fabric != QP_INFO_UDP)
        channel->rx.flow.source_port = udp_address_port(from);
    return true;
}

/* The last message was marked. What is not the peer's proves nothing of the path. */
static void count_marked(const struct udp_channel *channel)
{
    if (channel->rx.proven > 0)
        fabric_count(stats_of(channel), rx_marked_packets, channel->rx.proven);
}

static int on_receive_error(const struct udp_channel *channel, int error)
{
    /* An error that the network reports belongs to no packet of ours: loss is no news here. */
    if (error == EAGAIN || error == EWOULDBLOCK || error == EINTR || udp_send_error_is_loss(error) ||
        error == ENOMEM || error == ENOBUFS)
        return 0;
    return lh_fail(LH_EDEVICE, "cannot receive on UDP port %u: %s", channel->port->shared.port,
                   strerror(error));
}

/* Reads one message of the kernel. 1, 0: there is none, or a negative error. */
static int receive_message(struct udp_channel *channel, struct udp_direct *direct)
{
    struct udp_rx *rx = &channel->rx;
    /* GRO's segment size, the drops, the traffic class. */
    _Alignas(struct cmsghdr) uint8_t control[3 * CMSG_SPACE(sizeof(int))];
    struct iovec whole = {direct->staging, sizeof direct->staging};
    struct msghdr header = {
        .msg_name = &rx->from,
        .msg_namelen = sizeof rx->from,
        .msg_iov = &whole,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof control,
    };
    ssize_t got = recvmsg(direct->socket.fd, &header, MSG_DONTWAIT);
    if (got < 0)
        return on_receive_error(channel, errno);
    uint32_t bytes = (uint32_t)got;
    uint32_t segment_bytes = read_control(channel, direct, &header, bytes);
    if (bytes == 0) {
        fabric_count(stats_of(channel), bad_header, 1);
        return 1;
    }
    if (!note_peer(channel, &rx->from)) {
        fabric_count(stats_of(channel), bad_source, (bytes + segment_bytes - 1) / segment_bytes);
        return 1;
    }
    const struct udp_received message = {bytes, segment_bytes, 0};
    udp_take_message(channel, direct->staging, &message);
    if (rx->marked)
        count_marked(channel);
    return 1;
}

/* Judges one packet that came by the bypass, or that somebody put into the inbox. */
static void take_part(struct udp_channel *channel, const struct udp_part *part)
{
    struct udp_rx *rx = &channel->rx;
    rx->from = *part->from;
    if (!note_peer(channel, part->from)) {
        fabric_count(stats_of(channel), bad_source, 1);
        return;
    }
    const uint32_t before = rx->arrivals.count;
    const struct udp_received message = {part->bytes, part->bytes, part->place};
    udp_take_message(channel, part->data, &message);
    if (!part->marked)
        return;
    count_marked(channel);
    if (rx->arrivals.count > before && channel->endpoint->peer.fabric == QP_INFO_VERBS)
        udp_cnp_on_marked(channel, rx->arrivals.out[before].generation);
}

static uint32_t poll_inbox(struct udp_channel *channel)
{
    const struct udp_arrivals *arrivals = &channel->rx.arrivals;
    for (uint32_t i = 0; i < INBOX_MAX && arrivals->count < arrivals->room; i++) {
        struct udp_packet *packet = udp_inbox_take(&channel->inbox);
        if (packet == NULL)
            break;
        const struct udp_part part = {.from = &packet->from,
                                      .data = packet->data,
                                      .bytes = packet->bytes,
                                      .place = packet->place,
                                      .marked = packet->marked};
        take_part(channel, &part);
        udp_packet_return(&udp_fabric_of(channel->endpoint)->packets, packet);
    }
    return arrivals->count;
}

/* It came to the channel's port, and names one of its queue pairs. */
static bool is_for_channel(const struct udp_channel *channel, const struct udp_bypass_packet *packet)
{
    if (packet->port != channel->port->shared.port || packet->bytes < ROCE_BTH_BYTES)
        return false;
    uint32_t qpn = lh_get_be24(packet->data + ROCE_QPN_OFFSET);
    for (uint32_t i = 0; i < channel->endpoint->table.attr.generations; i++)
        if (channel->generations[i].qpn == qpn)
            return true;
    return false;
}

/* What comes from a peer takes one path. Where that is the bypass, a socket has packets from before or after
 * a change of it only, and one in so many empty polls reads it: each is a system call. */
static bool sockets_may_wait(struct udp_channel *channel)
{
    struct udp_rx *rx = &channel->rx;
    if (!rx->bypassed || rx->leaving)
        return false;
    if (++rx->bypass_empty % SOCKETS_EVERY != 0)
        return true;
    rx->bypassed = rx->bypass_empty < SOCKETS_EVERY * SOCKETS_EVERY; /* silence: both from now on */
    return false;
}

/* Takes what waits in the bypass, as much as there is room for: the channel's own where it lies, all other
 * into inboxes. The number of packets, bad ones included; negative: the device is gone. */
static int poll_bypass(struct udp_channel *channel)
{
    struct udp_bypass *bypass = udp_fabric_of(channel->endpoint)->bypass;
    const struct udp_arrivals *arrivals = &channel->rx.arrivals;
    struct udp_bypass_packet packets[FABRIC_BATCH_MAX];
    uint32_t room = arrivals->room - arrivals->count;
    int count = bypass->ops->receive(bypass, packets, (uint32_t)lh_min(room, FABRIC_BATCH_MAX));
    if (count > 0) {
        channel->rx.bypassed = true;
        channel->rx.bypass_empty = 0;
    }
    for (int i = 0; i < count; i++) {
        const struct udp_part part = {.from = &packets[i].from,
                                      .data = packets[i].data,
                                      .bytes = packets[i].bytes,
                                      .place = packets[i].ip_id,
                                      .marked = packets[i].marked};
        if (is_for_channel(channel, &packets[i]))
            take_part(channel, &part);
        else
            udp_demux_bypassed(channel, packets[i].port, &part);
    }
    if (count > 0)
        bypass->ops->release(bypass, packets, (uint32_t)count);
    return count;
}

/* A poll that took nothing after it read that many messages. Messages that were dropped may hide good ones
 * behind them (late parity does). Not for ever: what had waited in the socket when that began was read after
 * as many as it can hold. */
static int nothing_taken(struct udp_channel *channel, uint32_t dropped, bool more)
{
    struct udp_rx *rx = &channel->rx;
    rx->dropped_since += dropped;
    if (more && rx->dropped_since < 2 * channel->port->shared.receive_bytes / MESSAGE_BOOKED_BYTES)
        return FABRIC_POLL_AGAIN;
    rx->dropped_since = 0;
    return 0;
}

/* The owner sleeps by another descriptor from now on. */
static void announce_change(const struct udp_channel *channel)
{
    const struct fabric_endpoint_attr *attr = &channel->endpoint->table.attr;
    if (attr->wake != NULL)
        attr->wake(attr->wake_context, FABRIC_FDS_CHANGED);
}

/* So much comes that a socket of its own would pay. */
static void seek_promotion(struct udp_channel *channel, uint32_t packets)
{
    struct udp_fabric *fabric = udp_fabric_of(channel->endpoint);
    struct udp_rx *rx = &channel->rx;
    rx->from_inbox += packets;
    if (rx->from_inbox < PROMOTE_PACKETS || pthread_mutex_trylock(&fabric->lock) != 0)
        return;
    udp_port_promote(channel);
    pthread_mutex_unlock(&fabric->lock);
    rx->from_inbox = 0;
    if (udp_direct_of(channel) != NULL)
        announce_change(channel);
}

static int poll_shared(struct udp_channel *channel)
{
    struct udp_rx *rx = &channel->rx;
    uint32_t messages = 0;
    enum udp_left left = udp_demux_shared(channel, &messages);
    uint32_t taken = poll_inbox(channel);
    if (left == UDP_LEFT_NOTHING)
        rx->shared_unread = false;
    if (taken == 0 && udp_inbox_waiting(&channel->inbox) == 0)
        return nothing_taken(channel, messages, left != UDP_LEFT_NOTHING);
    rx->dropped_since = 0;
    if (taken == 0)
        return FABRIC_POLL_AGAIN;
    if (udp_direct_of(channel) == NULL)
        seek_promotion(channel, taken);
    return (int)taken;
}

/* Of a direct socket that is to be given up, nothing is lost: it gets no more, is read to its end, and
 * left. False: another thread has the lock; ask again. */
static bool begin_leave(struct udp_channel *channel, struct udp_direct *direct)
{
    struct udp_fabric *fabric = udp_fabric_of(channel->endpoint);
    if (channel->rx.leaving)
        return true;
    if (pthread_mutex_trylock(&fabric->lock) != 0)
        return false;
    if (!udp_port_begin_leave(channel)) {
        atomic_store_explicit(&direct->leave, false, memory_order_relaxed);
        channel->port->socket_slots.socket_slots[direct->socket_slot].leaving = false;
    }
    pthread_mutex_unlock(&fabric->lock);
    return true;
}

static void end_leave(struct udp_channel *channel)
{
    struct udp_fabric *fabric = udp_fabric_of(channel->endpoint);
    pthread_mutex_lock(&fabric->lock);
    udp_port_leave(channel);
    pthread_mutex_unlock(&fabric->lock);
    announce_change(channel);
}

/* The direct socket had nothing, or only what was dropped. */
static int poll_beside(struct udp_channel *channel)
{
    struct udp_rx *rx = &channel->rx;
    if (rx->leaving)
        end_leave(channel);
    else if (!rx->shared_unread && udp_inbox_waiting(&channel->inbox) == 0 &&
             ++rx->empty_polls % SHARED_EVERY != 0)
        return nothing_taken(channel, 0, false);
    return poll_shared(channel);
}

/* Messages of the direct socket, as long as there is room for what is in them. */
static int poll_direct(struct udp_channel *channel, struct udp_direct *direct)
{
    const struct udp_arrivals *arrivals = &channel->rx.arrivals;
    uint32_t messages = 0;
    for (; messages < MESSAGES_MAX && arrivals->count < arrivals->room; messages++) {
        int received = receive_message(channel, direct);
        if (received < 0)
            return arrivals->count > 0 ? (int)arrivals->count : received;
        if (received == 0)
            break;
    }
    if (arrivals->count == 0)
        return messages < MESSAGES_MAX ? poll_beside(channel) : nothing_taken(channel, messages, true);
    channel->rx.dropped_since = 0;
    return (int)arrivals->count;
}

/* Of a poll that read packets. */
static int taken_or_again(const struct udp_channel *channel)
{
    uint32_t taken = channel->rx.arrivals.count;
    return taken > 0 ? (int)taken : FABRIC_POLL_AGAIN;
}

/* Nothing is posted, so what comes is late: it is read now and then. Through NAT a punch may come. */
static bool may_wait(struct udp_channel *channel, struct udp_direct *direct)
{
    const struct udp_endpoint *endpoint = channel->endpoint;
    struct udp_rx *rx = &channel->rx;
    if (endpoint->open_count > 0 || endpoint->peer.translated || rx->leaving || rx->shared_unread ||
        atomic_load_explicit(&direct->leave, memory_order_relaxed))
        return false;
    return ++rx->idle_polls % IDLE_EVERY != 0;
}

int udp_poll(struct fabric_endpoint *endpoint, uint32_t index, struct fabric_arrival *arrivals,
             uint32_t count)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    assert(index < udp->table.attr.channels);
    struct udp_channel *channel = udp->channels[index];
    struct udp_direct *direct = udp_direct_of(channel);
    if (!udp->connected || count == 0)
        return 0;
    /* The bits of these are set only when they were returned: nothing may be put into their places before. */
    udp_arrivals_begin(&channel->rx.arrivals, arrivals, count);
    if (channel->rx.arrivals.count > 0)
        return (int)channel->rx.arrivals.count;
    if (udp->peer.fabric == QP_INFO_VERBS)
        udp_demux_try(udp);
    uint32_t taken = poll_inbox(channel);
    if (taken > 0) {
        if (direct == NULL)
            seek_promotion(channel, taken);
        return (int)taken;
    }
    if (udp_fabric_of(udp)->bypass != NULL) {
        int got = poll_bypass(channel);
        if (got != 0)
            return got > 0 ? taken_or_again(channel) : got;
        if (sockets_may_wait(channel))
            return 0;
    }
    if (direct == NULL)
        return poll_shared(channel);
    if (may_wait(channel, direct))
        return 0;
    bool again =
        atomic_load_explicit(&direct->leave, memory_order_relaxed) && !begin_leave(channel, direct);
    int got = poll_direct(channel, direct);
    if (got > 0 && got != FABRIC_POLL_AGAIN && !channel->rx.leaving)
        udp_socket_slot_mark_active(&channel->port->socket_slots.socket_slots[direct->socket_slot]);
    return got == 0 && again ? FABRIC_POLL_AGAIN : got;
}

void udp_rx_forget(struct udp_channel *channel, uint32_t slot)
{
    struct immediate_split split = channel->endpoint->table.attr.split;
    uint32_t late = udp_arrivals_withdraw_slot(&channel->rx.arrivals, split, slot);
    if (late > 0)
        fabric_count(stats_of(channel), rx_late_packets, late);
}
