/*
 * tx.c - sending data packets: bursts of full packets by GSO, several bursts a system call, no copy of
 * payload.
 *
 * A burst is one kernel message whose segments are the packets; the kernel cuts it every header + MTU + 4
 * bytes. The trailer of a packet and the header of the next stand together in memory (a frame), so a burst
 * of n packets has 2 n + 1 pieces.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/tx.h"

#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "base/error.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define HEADER           ROCE_WRITE_IMM_HEADER_BYTES
#define UDP_HEADER_BYTES 8u

#define SEGMENT_CONTROL_BYTES CMSG_SPACE(sizeof(uint16_t))

/* The kernel's pace is a quarter above the owner's, which may be an eighth above what was reported last, so
 * that it never is the slower one of the two. */
#define PACE_HEADROOM 4u
/* Rates from 2^56 bits a second on are no rate. */
#define PACE_FACTOR_MAX 256u

/* What one call of the kernel sends. */
struct batch {
    uint32_t messages;
    uint32_t iovs;
    uint8_t frames[FABRIC_BATCH_MAX + 1][UDP_TRAILER_ROOM + ROCE_WRITE_IMM_HEADER_BYTES];
    struct iovec iov[3 * FABRIC_BATCH_MAX];
    struct mmsghdr message[FABRIC_BATCH_MAX];
    uint32_t message_writes[FABRIC_BATCH_MAX];
    uint64_t message_wire_bytes[FABRIC_BATCH_MAX];
    /* The size of segments, and ECN. */
    _Alignas(
        struct cmsghdr) uint8_t control[FABRIC_BATCH_MAX][SEGMENT_CONTROL_BYTES + UDP_ECN_CONTROL_BYTES];
    uint8_t damaged[UDP_PACKET_MAX]; /* the one packet of a batch that is sent with a flipped bit */
};

static uint32_t datagram_bytes(uint32_t payload_bytes)
{
    return HEADER + payload_bytes + roce_pad_bytes(payload_bytes) + ROCE_ICRC_BYTES;
}

static uint64_t ip_overhead(const struct udp_tx *tx)
{
    return UDP_HEADER_BYTES + (tx->flow.ipv4 ? 20u : 40u);
}

/* How many of the writes go into one kernel message. */
static uint32_t burst_length(const struct udp_channel *channel, const struct fabric_write *writes,
                             uint32_t count)
{
    const uint32_t mtu = channel->endpoint->table.attr.mtu_bytes;
    uint32_t most = UDP_GSO_BYTES_MAX / datagram_bytes(mtu);
    most = most < UDP_GSO_SEGMENTS_MAX ? most : UDP_GSO_SEGMENTS_MAX;
    if (!channel->tx.gso || most < 2)
        return 1;
    for (uint32_t i = 0; i < count && i < most; i++) {
        if (writes[i].corrupt_bit != 0)
            return i > 0 ? i : 1;
        if (writes[i].bytes != mtu) /* only the last segment may be short */
            return i + 1;
    }
    return count < most ? count : most;
}

/* Writes header and trailer of one packet into frames[at] and frames[at + 1]. */
static void frame_packet(struct udp_channel *channel, struct batch *batch, const struct fabric_write *write,
                         uint32_t at, uint32_t segment)
{
    struct udp_tx *tx = &channel->tx;
    assert(write->bytes <= channel->endpoint->table.attr.mtu_bytes);
    assert(write->generation < channel->endpoint->peer.generations);
    struct roce_packet packet = {
        .opcode = ROCE_UC_WRITE_ONLY_IMM,
        .dest_qpn = channel->peer_qpn[write->generation],
        .psn = tx->psn[write->generation],
        .va = write->va,
        .rkey = write->rkey,
        .immediate = write->immediate,
        .payload_bytes = write->bytes,
    };
    tx->psn[write->generation] = (packet.psn + 1) & ROCE_PSN_MASK;
    uint8_t *header = batch->frames[at] + UDP_TRAILER_ROOM;
    roce_encode_header(&packet, header);

    static const uint8_t zero_pad[3];
    uint32_t pad = roce_pad_bytes(write->bytes);
    uint32_t state = udp_prefix_get(&tx->prefix, &tx->flow, datagram_bytes(write->bytes), 0, segment);
    state = icrc_add_header(state, header, HEADER);
    state = icrc_add(state, write->payload, write->bytes);
    state = icrc_add(state, zero_pad, pad);
    uint8_t *end = batch->frames[at + 1] + UDP_TRAILER_ROOM;
    memset(end - ROCE_ICRC_BYTES - pad, 0, pad);
    icrc_store(state, end - ROCE_ICRC_BYTES);
}

static void add_piece(struct batch *batch, const uint8_t *bytes, size_t count)
{
    /* sendmsg only reads, but its struct is shared with recvmsg and so not const. */
    batch->iov[batch->iovs++] = (struct iovec){(void *)(uintptr_t)bytes, count};
}

/* The size of segments where there are several (not 0), and ECN where the endpoint wants it. */
static void set_control(const struct udp_channel *channel, struct msghdr *header, uint8_t *control,
                        uint16_t segment_bytes)
{
    bool ecn = channel->endpoint->table.attr.ecn_capable;
    if (!ecn && segment_bytes == 0)
        return;
    header->msg_control = control;
    header->msg_controllen =
        (segment_bytes != 0 ? SEGMENT_CONTROL_BYTES : 0) + (ecn ? UDP_ECN_CONTROL_BYTES : 0);
    struct cmsghdr *next = CMSG_FIRSTHDR(header);
    if (segment_bytes != 0) {
        next->cmsg_level = IPPROTO_UDP;
        next->cmsg_type = UDP_SEGMENT;
        next->cmsg_len = CMSG_LEN(sizeof segment_bytes);
        memcpy(CMSG_DATA(next), &segment_bytes, sizeof segment_bytes);
        next = (struct cmsghdr *)(void *)(control + SEGMENT_CONTROL_BYTES);
    }
    if (ecn)
        udp_cmsg_set_ecn(next, channel->tx.flow.ipv4);
}

static struct msghdr *begin_message(struct udp_tx *tx, struct batch *batch, uint32_t writes)
{
    struct msghdr *header = &batch->message[batch->messages].msg_hdr;
    *header = (struct msghdr){
        .msg_name = &tx->to,
        .msg_namelen = udp_address_size(&tx->to),
        .msg_iov = &batch->iov[batch->iovs],
    };
    batch->message_writes[batch->messages] = writes;
    batch->message_wire_bytes[batch->messages] = 0;
    return header;
}

/* Link emulation: the packet goes in one piece, with a bit of it that contradicts its iCRC. */
static void add_damaged(struct udp_channel *channel, struct batch *batch, const struct fabric_write *write,
                        uint32_t at)
{
    struct udp_tx *tx = &channel->tx;
    struct msghdr *header = begin_message(tx, batch, 1);
    frame_packet(channel, batch, write, at, 0);
    uint32_t bytes = datagram_bytes(write->bytes);
    uint32_t trailer = bytes - HEADER - write->bytes;
    uint8_t *damaged = batch->damaged;
    memcpy(damaged, batch->frames[at] + UDP_TRAILER_ROOM, HEADER);
    if (write->bytes > 0)
        memcpy(damaged + HEADER, write->payload, write->bytes);
    memcpy(damaged + HEADER + write->bytes, batch->frames[at + 1] + UDP_TRAILER_ROOM - trailer, trailer);
    uint32_t bit = (write->corrupt_bit - 1) % (8 * bytes);
    damaged[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    add_piece(batch, damaged, bytes);
    header->msg_iovlen = 1;
    set_control(channel, header, batch->control[batch->messages], 0);
    batch->message_wire_bytes[batch->messages++] = bytes + ip_overhead(tx);
}

/* Adds one kernel message with these packets, the first of which uses frames[at]. */
static void add_burst(struct udp_channel *channel, struct batch *batch, const struct fabric_write *writes,
                      uint32_t count, uint32_t at)
{
    struct udp_tx *tx = &channel->tx;
    struct msghdr *header = begin_message(tx, batch, count);
    uint32_t before = batch->iovs;
    uint32_t trailer = 0; /* of the packet before: goes with the next header */
    uint64_t wire_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        frame_packet(channel, batch, &writes[i], at + i, i);
        add_piece(batch, batch->frames[at + i] + UDP_TRAILER_ROOM - trailer, trailer + HEADER);
        if (writes[i].bytes > 0)
            add_piece(batch, writes[i].payload, writes[i].bytes);
        trailer = roce_pad_bytes(writes[i].bytes) + ROCE_ICRC_BYTES;
        wire_bytes += datagram_bytes(writes[i].bytes) + ip_overhead(tx);
    }
    add_piece(batch, batch->frames[at + count] + UDP_TRAILER_ROOM - trailer, trailer);
    header->msg_iovlen = batch->iovs - before;
    uint32_t segment_bytes = count > 1 ? datagram_bytes(writes[0].bytes) : 0;
    set_control(channel, header, batch->control[batch->messages], (uint16_t)segment_bytes);
    batch->message_wire_bytes[batch->messages++] = wire_bytes;
}

/* Lays out writes until all are in, or one that is damaged (there is memory for one). */
static void lay_out(struct udp_channel *channel, struct batch *batch, const struct fabric_write *writes,
                    uint32_t count)
{
    batch->messages = 0;
    batch->iovs = 0;
    uint32_t in = 0;
    while (in < count) { /* each round takes a write or more */
        if (writes[in].corrupt_bit != 0) {
            add_damaged(channel, batch, &writes[in], in);
            return;
        }
        uint32_t burst = burst_length(channel, &writes[in], count - in);
        /* A message's last trailer and the next one's header share a frame, but not its bytes. */
        add_burst(channel, batch, &writes[in], burst, in);
        in += burst;
    }
}

bool udp_send_error_is_loss(int error)
{
    switch (error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case EADDRNOTAVAIL: /* the interface lost its address for a moment */
    case EACCES:
    case EPERM:    /* a firewall's answer */
    case EMSGSIZE: /* the path's MTU fell */
        return true;
    default:
        return false;
    }
}

/* What to do when the kernel did not take the first message. 1: it is gone; 0: try again; else stop with
 * this. */
#define SEND_FULL (-1000)
static int on_send_error(struct udp_channel *channel, const struct batch *batch, int error)
{
    if (error == EINTR)
        return 0;
    if (error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM) {
        fabric_count(channel->endpoint->table.attr.stats, tx_backpressure, 1);
        return SEND_FULL;
    }
    if ((error == EINVAL || error == EIO) && batch->message_writes[0] > 1) {
        channel->tx.gso =
            false; /* this device or kernel does not segment; from now on one packet a message */
        return 0;
    }
    if (udp_send_error_is_loss(error))
        return 1;
    return lh_fail(LH_EDEVICE, "cannot send from UDP port %u: %s", channel->port->shared.port,
                   strerror(error));
}

/* Sends what is laid out. The number of writes that are gone, or a negative error. */
static int send_laid_out(struct udp_channel *channel, struct batch *batch)
{
    int sent = sendmmsg(udp_channel_fd(channel), batch->message, batch->messages, MSG_DONTWAIT);
    if (sent <= 0) {
        int result = on_send_error(channel, batch, sent < 0 ? errno : EAGAIN);
        return result == 1 ? (int)batch->message_writes[0] : result;
    }
    uint32_t writes = 0;
    uint64_t wire_bytes = 0;
    for (uint32_t i = 0; i < (uint32_t)sent; i++) {
        writes += batch->message_writes[i];
        wire_bytes += batch->message_wire_bytes[i];
    }
    fabric_count(channel->endpoint->table.attr.stats, tx_wire_bytes, wire_bytes);
    return (int)writes;
}

/* Where control packets come from, the path was proven (sdr/path.h). Data go to no other host, whatever
 * address a peer behind NAT says it has: that may be anybody's. */
static void keep_to_proven_host(struct udp_channel *channel)
{
    const struct udp_endpoint *endpoint = channel->endpoint;
    union udp_address *to = &channel->tx.to;
    if (atomic_load_explicit(&endpoint->seen_port, memory_order_relaxed) == 0 ||
        udp_address_same_host(to, &endpoint->seen_address))
        return;
    uint16_t port = udp_address_port(to);
    *to = endpoint->seen_address;
    udp_address_set_port(to, port);
}

/* A direct socket sends for one channel, so the kernel can space its packets; and its owner is active. */
static void use_direct(struct udp_channel *channel)
{
    struct udp_direct *direct = udp_direct_of(channel);
    if (direct == NULL)
        return;
    udp_seat_mark_active(&channel->port->seats.seats[direct->seat]);
    uint64_t rate_bps = atomic_load_explicit(&channel->endpoint->pace_bps, memory_order_relaxed);
    if (rate_bps == direct->rate_bps)
        return;
    direct->rate_bps = rate_bps;
    udp_socket_set_rate(&direct->socket, rate_bps);
}

int udp_post_writes(struct fabric_endpoint *endpoint, uint32_t index, const struct fabric_write *writes,
                    uint32_t count)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    assert(index < udp->table.attr.channels && udp->connected);
    struct udp_channel *channel = udp->channels[index];
    struct batch batch;
    uint32_t taken = 0;
    keep_to_proven_host(channel);
    use_direct(channel);
    while (taken < count) { /* each round takes a write, drops GSO for good, or was interrupted */
        uint32_t left = count - taken;
        lay_out(channel, &batch, writes + taken, left < FABRIC_BATCH_MAX ? left : FABRIC_BATCH_MAX);
        int gone = send_laid_out(channel, &batch);
        if (gone == SEND_FULL)
            break;
        if (gone < 0)
            return taken > 0 ? (int)taken : gone;
        taken += (uint32_t)gone;
    }
    return (int)taken;
}

void udp_pace(struct fabric_endpoint *endpoint, uint64_t rate_bps)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    const struct fabric_endpoint_attr *attr = &udp->table.attr;
    bool ipv4 = udp_address_is_ipv4(&udp_fabric_of(udp)->local);
    uint64_t overhead = ipv4 ? ROCE_WRITE_IMM_OVERHEAD_V4 : ROCE_WRITE_IMM_OVERHEAD_V6;
    uint64_t wire_bps = UINT64_MAX;
    assert(rate_bps > 0);
    if (rate_bps < UINT64_MAX / PACE_FACTOR_MAX) {
        wire_bps = rate_bps + rate_bps * overhead / attr->mtu_bytes;
        wire_bps += wire_bps / PACE_HEADROOM;
    }
    /* Each channel's owner tells the kernel when it sends next. */
    atomic_store_explicit(&udp->pace_bps, wire_bps, memory_order_relaxed);
}
