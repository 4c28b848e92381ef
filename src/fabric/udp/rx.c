/*
 * rx.c - receiving data packets: each message of the kernel goes straight to where its packets are guessed
 * to belong.
 *
 * For each packet in a message, in this order: header, QPN, iCRC over the bytes where they lie, rx_check().
 * A payload that lies elsewhere than where it belongs is moved when the whole message has been judged, by
 * way of the `aside` buffer when it lies in a user's buffer: the place it took may be another packet's, and
 * the place it belongs to may hold another packet still. So nothing is overwritten before it is moved. What
 * a bad packet leaves in a guessed place does no harm: that place has not been received, and nobody reads
 * it yet.
 *
 * A poll reads a second message only when every packet before it in this poll was where it was guessed:
 * then the guesses go on behind them (see predict.h) and cannot hit a place that was received but whose bit
 * is not set yet.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/udp.h"

#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "base/error.h"
#include "base/bitmap.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define HEADER ROCE_WRITE_IMM_HEADER_BYTES
/* Messages that one poll reads at most, so that a flood of garbage cannot hold it. */
#define MESSAGES_MAX 16u

/* One packet of a message. */
struct segment {
    uint32_t offset;
    uint32_t bytes;
    uint32_t index;
    const uint8_t *header;
    struct roce_packet packet; /* its payload pointer means nothing: the payload is scattered */
    uint8_t generation;
};

static struct lh_stats *stats_of(const struct udp_channel *channel)
{
    return channel->endpoint->table.attr.stats;
}

/* The finished iCRC of a segment that would have this IP ID (on IPv6: any). */
static uint32_t icrc_of(struct udp_channel *channel, struct udp_scatter *scatter,
                        const struct segment *segment, uint32_t ip_id)
{
    struct udp_rx *rx = &channel->rx;
    uint32_t state = udp_prefix_get(&rx->prefix, &rx->flow, segment->bytes, rx->flow.source_port, ip_id);
    state = icrc_add_header(state, segment->header, HEADER);
    uint32_t offset = segment->offset + HEADER;
    uint32_t left = segment->bytes - HEADER - ROCE_ICRC_BYTES;
    while (left > 0) { /* each round takes a byte or more */
        uint32_t got;
        const uint8_t *piece = udp_scatter_piece(scatter, offset, left, &got);
        state = icrc_add(state, piece, got);
        offset += got;
        left -= got;
    }
    return icrc_finish(state);
}

static bool icrc_holds(struct udp_channel *channel, struct udp_scatter *scatter,
                       const struct segment *segment)
{
    uint8_t trailer[ROCE_ICRC_BYTES];
    udp_scatter_gather(scatter, segment->offset + segment->bytes - ROCE_ICRC_BYTES, ROCE_ICRC_BYTES,
                       trailer);
    uint32_t wanted = icrc_load(trailer);
    bool ours = channel->endpoint->peer.fabric == QP_INFO_UDP;
    /* A peer of our kind sends GSO bursts with IDs 0, 1, 2 …, and the kernel most often joins them as they
     * were. */
    uint32_t ip_id = ours ? segment->index : 0;
    uint32_t found = icrc_of(channel, scatter, segment, ip_id);
    if (found == wanted)
        return true;
    /* A plain IPv4 socket does not see the ID. The iCRC is affine in it, so the difference can be solved
     * for. */
    uint16_t difference;
    if (!channel->rx.flow.ipv4 || !icrc_solve_ip_id(found, wanted, segment->bytes, &difference))
        return false;
    /* Hardware may have any ID; ours are small, which leaves 25 bits of the check instead of 16. */
    return !ours || (ip_id ^ difference) <= UDP_IP_ID_MAX;
}

static bool find_generation(const struct udp_channel *channel, uint32_t qpn, uint8_t *generation)
{
    const struct udp_endpoint *endpoint = channel->endpoint;
    for (uint32_t i = 0; i < endpoint->table.attr.generations; i++) {
        if (endpoint->qpn[i][channel->index] == qpn) {
            *generation = (uint8_t)i;
            return true;
        }
    }
    return false;
}

/* Header, QPN and iCRC; counts what is wrong. `copy` holds HEADER bytes, for a header that lies in pieces.
 */
static bool read_segment(struct udp_channel *channel, struct udp_scatter *scatter, struct segment *segment,
                         uint8_t *copy)
{
    uint32_t want = segment->bytes < HEADER ? segment->bytes : HEADER;
    uint32_t got;
    segment->header = udp_scatter_piece(scatter, segment->offset, want, &got);
    if (got < want) {
        udp_scatter_gather(scatter, segment->offset, want, copy);
        segment->header = copy;
    }
    switch (roce_decode(segment->header, segment->bytes, &segment->packet)) {
    case ROCE_OK:
        break;
    case ROCE_BAD_HEADER:
        fabric_count(stats_of(channel), bad_header, 1);
        return false;
    case ROCE_BAD_LENGTH:
        fabric_count(stats_of(channel), bad_length, 1);
        return false;
    }
    if (segment->packet.opcode != ROCE_UC_WRITE_ONLY_IMM) {
        fabric_count(stats_of(channel), bad_header, 1);
        return false;
    }
    if (!find_generation(channel, segment->packet.dest_qpn, &segment->generation)) {
        fabric_count(stats_of(channel), bad_qpn, 1);
        return false;
    }
    if (!icrc_holds(channel, scatter, segment)) {
        fabric_count(stats_of(channel), bad_icrc, 1);
        return false;
    }
    return true;
}

/* The payload is in place (true), or put on the list of moves. */
static bool settle_payload(struct udp_rx *rx, struct udp_scatter *scatter, const struct segment *segment,
                           uint8_t *place)
{
    uint32_t offset = segment->offset + HEADER;
    uint32_t bytes = segment->packet.payload_bytes;
    uint32_t got;
    const uint8_t *where = udp_scatter_piece(scatter, offset, bytes, &got);
    if (where == place && got == bytes)
        return true;
    if (udp_scatter_is_guessed(scatter, offset)) {
        assert(rx->aside_bytes + bytes <= sizeof rx->aside);
        uint8_t *aside = rx->aside + rx->aside_bytes;
        udp_scatter_gather(scatter, offset, bytes, aside);
        rx->aside_bytes += bytes;
        where = aside;
    }
    assert(rx->move_count < UDP_ARRIVALS_MAX);
    rx->moves[rx->move_count++] = (struct udp_move){place, where, bytes};
    return false;
}

/* Judges one packet. True: taken, and it lies where it was guessed. */
static bool judge_segment(struct udp_channel *channel, struct udp_scatter *scatter, struct segment *segment)
{
    struct udp_rx *rx = &channel->rx;
    const struct rx_table *table = &channel->endpoint->table;
    uint8_t copy[HEADER];
    if (!read_segment(channel, scatter, segment, copy))
        return false;
    const struct roce_packet *packet = &segment->packet;
    uint8_t *place;
    enum rx_verdict verdict = rx_check(table, packet, channel->index, segment->generation, &place);
    rx_count(table->attr.stats, verdict);
    if (verdict != RX_TAKE && verdict != RX_DUPLICATE)
        return false;
    assert(rx->ready_count < UDP_ARRIVALS_MAX);
    rx->ready[rx->ready_count++] =
        (struct fabric_arrival){packet->immediate, (uint16_t)packet->payload_bytes, segment->generation};
    if (verdict == RX_DUPLICATE || packet->payload_bytes == 0)
        return false;
    struct immediate_fields fields = immediate_part(table->attr.split, packet->immediate);
    predict_saw(&rx->predict, table, fields.message, fields.packet);
    return settle_payload(rx, scatter, segment, place);
}

/* Judges all packets of a message and moves what is misplaced. True: all of them lie where they were
 * guessed. */
static bool take_message(struct udp_channel *channel, struct udp_scatter *scatter, uint32_t bytes,
                         uint32_t segment_bytes)
{
    struct udp_rx *rx = &channel->rx;
    uint32_t hits = 0;
    uint32_t index = 0;
    rx->move_count = 0;
    rx->aside_bytes = 0;
    for (uint32_t offset = 0; offset < bytes; offset += segment_bytes, index++) {
        uint32_t left = bytes - offset;
        struct segment segment = {offset, left < segment_bytes ? left : segment_bytes, index, NULL, {0}, 0};
        if (judge_segment(channel, scatter, &segment))
            hits++;
    }
    for (uint32_t i = 0; i < rx->move_count; i++)
        memcpy(rx->moves[i].place, rx->moves[i].bytes, rx->moves[i].count);
    if (hits > 0)
        fabric_count(stats_of(channel), rx_guess_hits, hits);
    if (rx->move_count > 0)
        fabric_count(stats_of(channel), rx_guess_misses, rx->move_count);
    return hits == index;
}

/* Reads what the kernel says about a message: how large its packets are, and how many it has dropped so
 * far. */
static uint32_t read_control(struct udp_channel *channel, struct msghdr *header, uint32_t bytes)
{
    uint32_t segment_bytes = bytes;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c != NULL; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int size;
            memcpy(&size, CMSG_DATA(c), sizeof size);
            if (size > 0)
                segment_bytes = (uint32_t)size;
        } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
            uint32_t drops;
            memcpy(&drops, CMSG_DATA(c), sizeof drops);
            if (drops != channel->rx.kernel_drops)
                fabric_count(stats_of(channel), rx_socket_drops, drops - channel->rx.kernel_drops);
            channel->rx.kernel_drops = drops;
        }
    }
    return segment_bytes;
}

/* Whether a packet from there can be the peer's; notes its port, which enters the iCRC. */
static bool source_is_peer(struct udp_channel *channel, const union udp_address *from)
{
    const struct udp_endpoint *endpoint = channel->endpoint;
    uint16_t port = udp_address_port(from);
    if (!udp_address_same_host(from, &endpoint->peer_address))
        return false;
    /* Hardware chooses source ports as it likes. */
    if (endpoint->peer.fabric == QP_INFO_UDP && port != endpoint->peer.channel_port[channel->index])
        return false;
    channel->rx.flow.source_port = port;
    return true;
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
                       "a posted receive buffer cannot be written; it must stay mapped until done");
    return lh_fail(LH_EDEVICE, "cannot receive on UDP port %u: %s", channel->socket.port, strerror(error));
}

/* Reads one message of the kernel. An enum received, or a negative error. */
static int receive_message(struct udp_channel *channel)
{
    struct udp_endpoint *endpoint = channel->endpoint;
    struct udp_rx *rx = &channel->rx;
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint32_t))];
    rx->scatter.guesses = predict_places(&rx->predict, &endpoint->table, endpoint->open, rx->scatter.places,
                                         udp_scatter_guesses_max(rx->scatter.mtu_bytes));
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
    uint32_t segment_bytes = read_control(channel, &header, bytes);
    if (bytes == 0) {
        fabric_count(stats_of(channel), bad_header, 1);
        return RECEIVED_OTHERWISE;
    }
    if (!source_is_peer(channel, &rx->from)) {
        fabric_count(stats_of(channel), bad_source, (bytes + segment_bytes - 1) / segment_bytes);
        return RECEIVED_OTHERWISE;
    }
    return take_message(channel, &rx->scatter, bytes, segment_bytes) ? RECEIVED_AS_GUESSED
                                                                     : RECEIVED_OTHERWISE;
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
    /* The message of the inbox is one packet without guesses, "staged" where it lies. */
    rx->scatter.guesses = 0;
    rx->scatter.staging = packet->data;
    take_message(channel, &rx->scatter, packet->bytes, packet->bytes);
    rx->scatter.staging = rx->staging;
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

int udp_poll(struct fabric_endpoint *endpoint, uint32_t index, struct fabric_arrival *arrivals,
             uint32_t count)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    assert(index < udp->table.attr.channels);
    struct udp_channel *channel = udp->channels[index];
    struct udp_rx *rx = &channel->rx;
    if (!udp->connected || count == 0)
        return 0;
    /* The bits of these are set only when they were returned, so guesses must wait for the next poll. */
    uint32_t taken = hand_out(rx, arrivals, count);
    if (taken == 0 && channel->inbox != NULL)
        taken = poll_inbox(channel, arrivals, count);
    if (taken > 0)
        return (int)taken;

    predict_poll_begins(&rx->predict);
    const uint32_t expected = udp_scatter_guesses_max(rx->scatter.mtu_bytes);
    for (uint32_t i = 0; i < MESSAGES_MAX; i++) {
        int received = receive_message(channel);
        if (received < 0)
            return taken > 0 ? (int)taken : received;
        taken += hand_out(rx, arrivals + taken, count - taken);
        if (received == RECEIVED_NOTHING || (received == RECEIVED_OTHERWISE && taken > 0))
            break;
        if (rx->ready_count > 0 || count - taken < expected)
            break;
    }
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
