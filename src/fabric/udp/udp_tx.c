/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/udp_parts.h"

#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "fabric/udp/udp_state.h"

/* ---- punch ----------------------------------------------------------------------------------------- */

#define PUNCH_FIRST_NS LH_NS_PER_MS
#define PUNCH_LAST_NS  (5 * LH_NS_PER_S) /* NAT keeps what it saw for 30 s and more (RFC 4787, REQ-5) */
#define PUNCH_BYTES    (ROCE_WRITE_IMM_HEADER_BYTES + ROCE_ICRC_BYTES)

static lh_time punch_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (lh_time)time.tv_sec * LH_NS_PER_S + (lh_time)time.tv_nsec;
}

/* Reads of the channel only what stays as it was connected: its thread may be sending. So a punch is sealed
 * with a key of its own. The shared socket has the port of all others. */
static void punch_channel(const struct udp_channel *channel)
{
    const struct udp_endpoint *endpoint = channel->endpoint;
    const struct icrc_flow *flow = &channel->tx.flow;
    uint8_t bytes[PUNCH_BYTES];
    const struct roce_packet packet = {
        .opcode = ROCE_UC_WRITE_ONLY_IMM,
        .dest_qpn = channel->generations[0].peer_qpn,
        .immediate = endpoint->punch_proof,
    };
    size_t header = roce_encode_header(&packet, bytes);
    uint8_t sealed[SEAL_BYTES + ROCE_WRITE_IMM_HEADER_BYTES];
    const void *datagram = bytes;
    size_t length = PUNCH_BYTES;
    if (endpoint->keys != NULL) {
        const struct seal_text text = {.head = bytes, .head_bytes = (uint32_t)header};
        length = udp_keys_seal(&endpoint->keys->punch, packet.dest_qpn, &text, sealed);
        datagram = sealed;
    } else {
        uint32_t state = icrc_add_header(icrc_begin(flow, PUNCH_BYTES, 0, true), bytes, header);
        icrc_store(state, bytes + header);
    }
    union udp_address to = endpoint->peer_address;
    udp_address_set_port(&to, flow->destination_port);
    ssize_t sent =
        sendto(channel->port->shared.fd, datagram, length, MSG_DONTWAIT, &to.any, udp_address_size(&to));
    (void)sent; /* as lost as any packet may be */
}

/* Sends what is due. Of the thread that sends control packets. */
static void udp_punch_due(struct udp_endpoint *endpoint)
{
    lh_time now = punch_now();
    if (now < endpoint->punch_at)
        return;
    endpoint->punch_span = endpoint->punch_span == 0 ? PUNCH_FIRST_NS : 2 * endpoint->punch_span;
    if (endpoint->punch_span > PUNCH_LAST_NS)
        endpoint->punch_span = PUNCH_LAST_NS;
    endpoint->punch_at = now + endpoint->punch_span;
    if (endpoint->keys != NULL && !udp_keys_may_seal(endpoint->keys, &endpoint->keys->punch))
        return;
    for (uint32_t i = 0; i < endpoint->table.attr.channels; i++)
        punch_channel(endpoint->channels[i]);
}

void udp_punch(struct fabric_endpoint *endpoint, uint32_t proof)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    udp->punch_proof = proof;
    atomic_store_explicit(&udp->punching, true, memory_order_release);
}

/* ---- tx -------------------------------------------------------------------------------------------- */

/*
 * Sending packets: bursts of equal packets by GSO, several bursts a system call, no copy of payload.
 *
 * A burst is one kernel message whose segments are the packets; the kernel cuts it at equal distances, so
 * only the last one may be shorter. The trailer of a packet and the header of the next stand together in
 * memory (a frame), so a burst of n packets has 2 n + 1 pieces.
 */

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
    union udp_address *to;
    bool ipv4;
    uint32_t messages;
    uint32_t packets; /* of all messages */
    uint32_t trailer; /* bytes of the packet before in this message: they go with the next header */
    uint32_t iovs;
    uint8_t frames[FABRIC_BATCH_MAX + 1][UDP_TRAILER_ROOM + ROCE_WRITE_IMM_HEADER_BYTES];
    struct iovec iov[3 * FABRIC_BATCH_MAX];
    struct mmsghdr message[FABRIC_BATCH_MAX];
    uint32_t message_packets[FABRIC_BATCH_MAX];
    uint32_t message_segment_bytes[FABRIC_BATCH_MAX];
    uint64_t message_wire_bytes[FABRIC_BATCH_MAX];
    /* The size of segments, and ECN. */
    _Alignas(
        struct cmsghdr) uint8_t control[FABRIC_BATCH_MAX][SEGMENT_CONTROL_BYTES + UDP_ECN_CONTROL_BYTES];
    uint8_t damaged[UDP_PACKET_MAX]; /* the one packet of a batch that is sent with a flipped bit */
};

/* ---- laying out -------------------------------------------------------------------------------------- */

static uint32_t datagram_bytes(uint32_t header_bytes, uint32_t payload_bytes)
{
    return header_bytes + payload_bytes + roce_pad_bytes(payload_bytes) + ROCE_ICRC_BYTES;
}

static void begin_batch(struct batch *batch, union udp_address *to)
{
    batch->to = to;
    batch->ipv4 = udp_address_is_ipv4(to);
    batch->messages = 0;
    batch->packets = 0;
    batch->iovs = 0;
}

static void begin_message(struct batch *batch)
{
    batch->message[batch->messages].msg_hdr = (struct msghdr){
        .msg_name = batch->to,
        .msg_namelen = udp_address_size(batch->to),
        .msg_iov = &batch->iov[batch->iovs],
    };
    batch->message_packets[batch->messages] = 0;
    batch->message_wire_bytes[batch->messages] = 0;
    batch->trailer = 0;
}

static void add_piece(struct batch *batch, const uint8_t *bytes, size_t count)
{
    /* sendmsg only reads, but its struct is shared with recvmsg and so not const. */
    batch->iov[batch->iovs++] = (struct iovec){(void *)(uintptr_t)bytes, count};
}

/* Where the header of the next packet is to be written. A message's last trailer and the next one's header
 * share a frame, but not its bytes. */
static uint8_t *next_header(struct batch *batch)
{
    return batch->frames[batch->packets] + UDP_TRAILER_ROOM;
}

/* Adds the packet whose header was written, and brought the iCRC to this state. next: the payload of the one
 * after it, of which as many bytes are fetched into the caches meanwhile; NULL: none. */
static void add_packet(struct batch *batch, uint32_t header_bytes, uint32_t state, const uint8_t *payload,
                       uint32_t bytes, const uint8_t *next)
{
    static const uint8_t zero_pad[3];
    const uint32_t pad = roce_pad_bytes(bytes);
    const uint8_t *header = next_header(batch);
    state = icrc_add_ahead(state, payload, bytes, next);
    state = icrc_add(state, zero_pad, pad);
    uint8_t *end = batch->frames[++batch->packets] + UDP_TRAILER_ROOM;
    memset(end - ROCE_ICRC_BYTES - pad, 0, pad);
    icrc_store(state, end - ROCE_ICRC_BYTES);
    add_piece(batch, header - batch->trailer, batch->trailer + header_bytes);
    if (bytes > 0)
        add_piece(batch, payload, bytes);
    batch->trailer = pad + ROCE_ICRC_BYTES;
    batch->message_packets[batch->messages]++;
    batch->message_wire_bytes[batch->messages] +=
        datagram_bytes(header_bytes, bytes) + UDP_HEADER_BYTES + (batch->ipv4 ? 20u : 40u);
}

/* The size of segments where there are several (not 0), and ECN where it is wanted. */
static void set_control(struct msghdr *header, uint8_t *control, uint16_t segment_bytes, bool ecn,
                        bool ipv4)
{
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
        udp_cmsg_set_ecn(next, ipv4);
}

/* Ends the message, which has as many bytes to a segment. */
static void end_message(struct batch *batch, uint32_t segment_bytes, bool ecn)
{
    struct msghdr *header = &batch->message[batch->messages].msg_hdr;
    const uint8_t *end = batch->frames[batch->packets] + UDP_TRAILER_ROOM;
    bool several = batch->message_packets[batch->messages] > 1;
    batch->message_segment_bytes[batch->messages] = segment_bytes;
    add_piece(batch, end - batch->trailer, batch->trailer);
    header->msg_iovlen = (size_t)(&batch->iov[batch->iovs] - header->msg_iov);
    set_control(header, batch->control[batch->messages], several ? (uint16_t)segment_bytes : 0, ecn,
                batch->ipv4);
    batch->messages++;
}

/* Link emulation: the last message, of one packet, goes in one piece, with a bit of it that contradicts its
 * iCRC. */
static void damage_last(struct batch *batch, uint32_t corrupt_bit)
{
    struct msghdr *header = &batch->message[batch->messages - 1].msg_hdr;
    uint32_t bytes = 0;
    for (size_t i = 0; i < header->msg_iovlen; i++) { /* three pieces at most */
        memcpy(batch->damaged + bytes, header->msg_iov[i].iov_base, header->msg_iov[i].iov_len);
        bytes += (uint32_t)header->msg_iov[i].iov_len;
    }
    uint32_t bit = (corrupt_bit - 1) % (8 * bytes);
    batch->damaged[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    header->msg_iov[0] = (struct iovec){batch->damaged, bytes};
    header->msg_iovlen = 1;
}

/* ---- the kernel's answer ----------------------------------------------------------------------------- */

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

/* Who sends. */
struct sending {
    const struct udp_endpoint *endpoint;
    int fd;
    uint16_t port;
    bool *gso;                           /* false from when the kernel refused it */
    const struct udp_channel *bypassing; /* its packets take the fabric's bypass; NULL: the socket */
};

/* What to do when the kernel did not take the first message. 1: it is gone; 0: try again; else stop with
 * this. */
#define SEND_FULL (-1000)
static int on_send_error(const struct sending *sending, const struct batch *batch, int error)
{
    if (error == EINTR)
        return 0;
    if (error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM) {
        fabric_count(sending->endpoint->table.attr.stats, tx_backpressure, 1);
        return SEND_FULL;
    }
    if ((error == EINVAL || error == EIO) && batch->message_packets[0] > 1) {
        *sending->gso = false; /* this device or kernel does not segment: one packet a message */
        return 0;
    }
    if (error == EMSGSIZE) /* it was that, not segmentation, which the kernel refused: smaller ones come */
        *sending->gso = true;
    if (udp_send_error_is_loss(error))
        return 1;
    return lh_fail(LH_EDEVICE, "cannot send from UDP port %u: %s", sending->port, strerror(error));
}

/* The number of messages that are gone, or -1 and errno. */
static int send_by_bypass(const struct udp_channel *channel, const struct batch *batch)
{
    struct udp_bypass *bypass = udp_fabric_of(channel->endpoint)->bypass;
    const struct udp_bypass_batch messages = {
        .messages = batch->message,
        .segment_bytes = batch->message_segment_bytes,
        .count = batch->messages,
        .queue = channel->index,
        .source_port = channel->port->shared.port,
        .ecn = channel->endpoint->table.attr.ecn_capable,
    };
    return bypass->ops->send(bypass, &channel->tx.hop, &messages);
}

/* Sends what is laid out. The number of packets that are gone, or a negative error; raises *wire_bytes. */
static int send_laid_out(const struct sending *sending, struct batch *batch, uint64_t *wire_bytes)
{
    int sent;
    if (sending->bypassing != NULL)
        sent = send_by_bypass(sending->bypassing, batch);
    else if (batch->messages == 1) /* what is sent one by one is sent for its latency */
        sent = sendmsg(sending->fd, &batch->message[0].msg_hdr, MSG_DONTWAIT) < 0 ? -1 : 1;
    else
        sent = sendmmsg(sending->fd, batch->message, batch->messages, MSG_DONTWAIT);
    if (sent <= 0) {
        int result = on_send_error(sending, batch, sent < 0 ? errno : EAGAIN);
        return result == 1 ? (int)batch->message_packets[0] : result;
    }
    uint32_t packets = 0;
    for (uint32_t i = 0; i < (uint32_t)sent; i++) {
        packets += batch->message_packets[i];
        *wire_bytes += batch->message_wire_bytes[i];
    }
    return (int)packets;
}

/* ---- encrypted packets ------------------------------------------------------------------------------- */

/*
 * A packet is encrypted from the user's memory to here, behind the one before it; so a message is one piece.
 * What is not sent is encrypted again, with another number: this memory is the caller's stack.
 */

#define STAGING_BYTES 65536u

static_assert(STAGING_BYTES >= UDP_GSO_BYTES_MAX, "a whole message");

struct staging {
    uint32_t used;
    uint32_t message; /* where the message begins */
    uint8_t bytes[STAGING_BYTES];
};

static uint32_t sealed_bytes(uint32_t header_bytes, uint32_t payload_bytes)
{
    return SEAL_BYTES + header_bytes + payload_bytes;
}

static bool has_space(const struct staging *staging, uint32_t packets, uint32_t packet_bytes)
{
    return packets * packet_bytes <= STAGING_BYTES - staging->used;
}

static void begin_sealed(struct batch *batch, struct staging *staging)
{
    begin_message(batch);
    staging->message = staging->used;
}

static void add_sealed(struct batch *batch, struct staging *staging, struct udp_tx_key *key, uint32_t qpn,
                       const struct seal_text *text)
{
    uint32_t bytes = udp_keys_seal(key, qpn, text, staging->bytes + staging->used);
    staging->used += bytes;
    batch->packets++;
    batch->message_packets[batch->messages]++;
    batch->message_wire_bytes[batch->messages] += bytes + UDP_HEADER_BYTES + (batch->ipv4 ? 20u : 40u);
}

/* Of as many bytes to a segment. corrupt_bit: of the link emulation, which flips that bit of a lone packet;
 * or 0. */
static void end_sealed(struct batch *batch, struct staging *staging, uint32_t segment_bytes, bool ecn,
                       uint32_t corrupt_bit)
{
    struct msghdr *header = &batch->message[batch->messages].msg_hdr;
    uint8_t *first = staging->bytes + staging->message;
    const uint32_t bytes = staging->used - staging->message;
    bool several = batch->message_packets[batch->messages] > 1;
    if (corrupt_bit != 0) {
        uint32_t bit = (corrupt_bit - 1) % (8 * bytes);
        first[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    batch->message_segment_bytes[batch->messages] = segment_bytes;
    add_piece(batch, first, bytes);
    header->msg_iovlen = 1;
    set_control(header, batch->control[batch->messages], several ? (uint16_t)segment_bytes : 0, ecn,
                batch->ipv4);
    batch->messages++;
}

/* ---- data packets ------------------------------------------------------------------------------------ */

/* How many of the writes go into one kernel message, where the first has as many bytes. */
static inline uint32_t burst_length(const struct udp_channel *channel, const struct fabric_write *writes,
                                    uint32_t count, uint32_t first_bytes)
{
    const uint32_t first = writes[0].bytes; /* the MTU, or a piece of it */
    uint32_t maximum = UDP_GSO_BYTES_MAX / first_bytes;
    maximum = maximum < UDP_GSO_SEGMENTS_MAX ? maximum : UDP_GSO_SEGMENTS_MAX;
    if (!channel->tx.gso || maximum < 2)
        return 1;
    for (uint32_t i = 0; i < count && i < maximum; i++) {
        if (writes[i].corrupt_bit != 0)
            return i > 0 ? i : 1;
        if (writes[i].bytes != first) /* only the last segment may be short */
            return writes[i].bytes < first ? i + 1 : i;
    }
    return count < maximum ? count : maximum;
}

/* Writes the header of the next packet, which has a number that no other has. */
static inline void write_header(struct udp_channel *channel, const struct fabric_write *write,
                                uint8_t *header)
{
    assert(write->bytes <= channel->endpoint->table.attr.mtu_bytes);
    assert(write->generation < channel->endpoint->peer.generations);
    struct udp_generation *generation = &channel->generations[write->generation];
    struct roce_packet packet = {
        .opcode = ROCE_UC_WRITE_ONLY_IMM,
        .dest_qpn = generation->peer_qpn,
        .psn = generation->psn,
        .va = write->va,
        .rkey = write->rkey,
        .immediate = write->immediate,
        .payload_bytes = write->bytes,
    };
    generation->psn = (packet.psn + 1) & ROCE_PSN_MASK;
    roce_encode_header(&packet, header);
}

static void add_write(struct udp_channel *channel, struct batch *batch, const struct fabric_write *write,
                      uint32_t segment, const uint8_t *next)
{
    struct udp_tx *tx = &channel->tx;
    uint8_t *header = next_header(batch);
    write_header(channel, write, header);
    uint32_t state =
        udp_prefix_get(&tx->prefix, &tx->flow, datagram_bytes(HEADER, write->bytes), 0, segment);
    state = icrc_add_header(state, header, HEADER);
    add_packet(batch, HEADER, state, write->payload, write->bytes, next);
}

/* Lays out writes until all are in, or one that is damaged (there is memory for one). */
static void lay_out(struct udp_channel *channel, struct batch *batch, const struct fabric_write *writes,
                    uint32_t count)
{
    bool ecn = channel->endpoint->table.attr.ecn_capable;
    begin_batch(batch, &channel->tx.to);
    while (batch->packets < count) { /* each round takes a write or more */
        const struct fabric_write *first = &writes[batch->packets];
        uint32_t bytes = datagram_bytes(HEADER, first->bytes);
        uint32_t burst =
            first->corrupt_bit != 0 ? 1 : burst_length(channel, first, count - batch->packets, bytes);
        begin_message(batch);
        for (uint32_t i = 0; i < burst; i++)
            add_write(channel, batch, &first[i], i,
                      batch->packets + 1 < count ? writes[batch->packets + 1].payload : NULL);
        end_message(batch, bytes, ecn);
        if (first->corrupt_bit != 0) {
            damage_last(batch, first->corrupt_bit);
            return;
        }
    }
}

/* Lays out writes until all are in, or the staging area is full. The key may seal them. */
static void lay_out_sealed(struct udp_channel *channel, struct batch *batch, struct staging *staging,
                           const struct fabric_write *writes, uint32_t count)
{
    struct udp_endpoint *endpoint = channel->endpoint;
    struct udp_tx_key *key = &endpoint->keys->channel[channel->index].tx;
    begin_batch(batch, &channel->tx.to);
    staging->used = 0;
    while (batch->packets < count) { /* each round takes a write or more, or is the last */
        const struct fabric_write *first = &writes[batch->packets];
        uint32_t bytes = sealed_bytes(HEADER, first->bytes);
        uint32_t burst =
            first->corrupt_bit != 0 ? 1 : burst_length(channel, first, count - batch->packets, bytes);
        if (!has_space(staging, burst, bytes))
            return;
        begin_sealed(batch, staging);
        for (uint32_t i = 0; i < burst; i++) {
            uint8_t header[HEADER];
            write_header(channel, &first[i], header);
            const struct seal_text text = {header, HEADER, first[i].payload, first[i].bytes};
            add_sealed(batch, staging, key, channel->generations[first[i].generation].peer_qpn, &text);
        }
        end_sealed(batch, staging, bytes, endpoint->table.attr.ecn_capable, first->corrupt_bit);
    }
}

/* Where control packets come from, the path was proven (sdr/qp_path.h). Data go to no other host, whatever
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
    udp_socket_slot_mark_active(&channel->port->socket_slots.socket_slots[direct->socket_slot]);
    uint64_t rate_bps = atomic_load_explicit(&channel->endpoint->pace_bps, memory_order_relaxed);
    if (rate_bps == direct->rate_bps)
        return;
    direct->rate_bps = rate_bps;
    udp_socket_set_rate(&direct->socket, rate_bps);
}

/* The channel, if its packets take the bypass now. */
static const struct udp_channel *use_bypass(struct udp_channel *channel)
{
    struct udp_bypass *bypass = udp_fabric_of(channel->endpoint)->bypass;
    struct udp_tx *tx = &channel->tx;
    return bypass != NULL && bypass->ops->reaches(bypass, &tx->to, &tx->hop) ? channel : NULL;
}

/* udp_post_writes(); staging: of an encrypted endpoint, else NULL. */
static __attribute__((noinline)) int post_all(struct udp_channel *channel, const struct sending *sending,
                                              struct staging *staging, const struct fabric_write *writes,
                                              uint32_t count)
{
    struct udp_endpoint *udp = channel->endpoint;
    struct batch batch;
    uint32_t taken = 0;
    while (taken < count) { /* each round takes a write, drops GSO for good, or was interrupted */
        uint32_t left = count - taken < FABRIC_BATCH_MAX ? count - taken : FABRIC_BATCH_MAX;
        if (staging && !udp_keys_may_seal(udp->keys, &udp->keys->channel[channel->index].tx))
            break;
        if (staging)
            lay_out_sealed(channel, &batch, staging, writes + taken, left);
        else
            lay_out(channel, &batch, writes + taken, left);
        uint64_t wire_bytes = 0;
        int gone = send_laid_out(sending, &batch, &wire_bytes);
        if (gone == SEND_FULL)
            break;
        if (gone < 0)
            return taken > 0 ? (int)taken : gone;
        fabric_count(udp->table.attr.stats, tx_wire_bytes, wire_bytes);
        taken += (uint32_t)gone;
    }
    return (int)taken;
}

/* Apart, so that clear text has no staging on its stack. */
static __attribute__((noinline)) int post_sealed(struct udp_channel *channel, const struct sending *sending,
                                                 const struct fabric_write *writes, uint32_t count)
{
    struct staging staging;
    return post_all(channel, sending, &staging, writes, count);
}

int udp_post_writes(struct fabric_endpoint *endpoint, uint32_t index, const struct fabric_write *writes,
                    uint32_t count)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    assert(index < udp->table.attr.channels && udp->connected);
    struct udp_channel *channel = udp->channels[index];
    keep_to_proven_host(channel);
    use_direct(channel);
    const struct sending sending = {udp, udp_channel_fd(channel), channel->port->shared.port,
                                    &channel->tx.gso, use_bypass(channel)};
    return udp->keys != NULL ? post_sealed(channel, &sending, writes, count)
                             : post_all(channel, &sending, NULL, writes, count);
}

void udp_pace(struct fabric_endpoint *endpoint, uint64_t rate_bps)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    const struct fabric_endpoint_attr *attr = &udp->table.attr;
    bool ipv4 = udp_address_is_ipv4(&udp_fabric_of(udp)->local);
    uint64_t overhead = ipv4 ? ROCE_WRITE_IMM_OVERHEAD_V4 : ROCE_WRITE_IMM_OVERHEAD_V6;
    overhead += udp->keys != NULL ? ROCE_SEALED_EXTRA : 0;
    uint64_t wire_bps = UINT64_MAX;
    assert(rate_bps > 0);
    if (rate_bps < UINT64_MAX / PACE_FACTOR_MAX) {
        wire_bps = rate_bps + rate_bps * overhead / attr->mtu_bytes;
        wire_bps += wire_bps / PACE_HEADROOM;
    }
    /* Each channel's owner tells the kernel when it sends next. */
    atomic_store_explicit(&udp->pace_bps, wire_bps, memory_order_relaxed);
}

/* ---- control datagrams ------------------------------------------------------------------------------- */

/* Where they go, and as what the peer knows that place: behind NAT it is seen elsewhere. */
struct control_path {
    union udp_address to;
    struct icrc_flow flow;
};

static struct control_path control_path(const struct udp_endpoint *endpoint)
{
    const struct udp_fabric *fabric = udp_fabric_of(endpoint);
    bool hardware = endpoint->peer.fabric == QP_INFO_VERBS;
    uint16_t seen_port = atomic_load_explicit(&endpoint->seen_port, memory_order_relaxed);
    union udp_address known = endpoint->peer_address; /* to the peer itself */
    udp_address_set_port(&known, hardware ? ROCE_UDP_PORT : endpoint->peer.control_port);
    struct control_path path = {
        .to = known,
        .flow = {.ipv4 = udp_address_is_ipv4(&fabric->local),
                 .source_port = fabric->front.port,
                 .destination_port = udp_address_port(&known)},
    };
    udp_address_bytes(&fabric->local, path.flow.source);
    udp_address_bytes(&known, path.flow.destination);
    if (seen_port != 0) {
        path.to = endpoint->seen_address;
        udp_address_set_port(&path.to, seen_port);
    }
    return path;
}

static uint32_t control_bytes(const struct udp_endpoint *endpoint, const struct fabric_datagram *datagram)
{
    return endpoint->keys != NULL ? sealed_bytes(ROCE_SEND_HEADER_BYTES, datagram->bytes)
                                  : datagram_bytes(ROCE_SEND_HEADER_BYTES, datagram->bytes);
}

/* How many of the datagrams go into one kernel message. */
static uint32_t control_burst_length(const struct udp_endpoint *endpoint,
                                     const struct fabric_datagram *datagrams, uint32_t count)
{
    const uint32_t first = control_bytes(endpoint, &datagrams[0]);
    uint32_t maximum = UDP_GSO_BYTES_MAX / first;
    maximum = maximum < UDP_GSO_SEGMENTS_MAX ? maximum : UDP_GSO_SEGMENTS_MAX;
    if (!endpoint->control_gso)
        return 1;
    for (uint32_t i = 1; i < count && i < maximum; i++) {
        uint32_t bytes = control_bytes(endpoint, &datagrams[i]);
        if (datagrams[i].corrupt_bit != 0 || bytes > first)
            return i;
        if (bytes < first)
            return i + 1;
    }
    return count < maximum ? count : maximum;
}

static void write_control_header(struct udp_endpoint *endpoint, const struct fabric_datagram *datagram,
                                 uint8_t *header)
{
    assert(datagram->bytes <= CONTROL_PROBE_MAX);
    const struct roce_packet packet = {
        .opcode = ROCE_UC_SEND_ONLY,
        .dest_qpn = endpoint->peer.control_qpn,
        .psn = endpoint->control_psn,
        .payload_bytes = datagram->bytes,
    };
    endpoint->control_psn = (packet.psn + 1) & ROCE_PSN_MASK;
    roce_encode_header(&packet, header);
}

static void add_datagram(struct udp_endpoint *endpoint, struct batch *batch, const struct icrc_flow *flow,
                         const struct fabric_datagram *datagram, uint32_t segment)
{
    uint8_t *header = next_header(batch);
    write_control_header(endpoint, datagram, header);
    uint32_t bytes = datagram_bytes(ROCE_SEND_HEADER_BYTES, datagram->bytes);
    uint32_t state = icrc_begin(flow, bytes, (uint16_t)segment, true);
    state = icrc_add_header(state, header, ROCE_SEND_HEADER_BYTES);
    add_packet(batch, ROCE_SEND_HEADER_BYTES, state, datagram->data, datagram->bytes, NULL);
}

static void lay_out_control(struct udp_endpoint *endpoint, struct batch *batch, struct control_path *path,
                            const struct fabric_datagram *datagrams, uint32_t count)
{
    begin_batch(batch, &path->to);
    while (batch->packets < count) { /* each round takes one or more */
        const struct fabric_datagram *first = &datagrams[batch->packets];
        uint32_t burst =
            first->corrupt_bit != 0 ? 1 : control_burst_length(endpoint, first, count - batch->packets);
        begin_message(batch);
        for (uint32_t i = 0; i < burst; i++)
            add_datagram(endpoint, batch, &path->flow, &first[i], i);
        end_message(batch, datagram_bytes(ROCE_SEND_HEADER_BYTES, first->bytes), false);
        if (first->corrupt_bit != 0) {
            damage_last(batch, first->corrupt_bit);
            return;
        }
    }
}

/* As lay_out_sealed(). */
static void lay_out_control_sealed(struct udp_endpoint *endpoint, struct batch *batch,
                                   struct staging *staging, struct control_path *path,
                                   const struct fabric_datagram *datagrams, uint32_t count)
{
    struct udp_keys *keys = endpoint->keys;
    begin_batch(batch, &path->to);
    staging->used = 0;
    while (batch->packets < count) { /* each round takes one or more, or is the last */
        const struct fabric_datagram *first = &datagrams[batch->packets];
        uint32_t bytes = control_bytes(endpoint, first);
        uint32_t burst =
            first->corrupt_bit != 0 ? 1 : control_burst_length(endpoint, first, count - batch->packets);
        if (!has_space(staging, burst, bytes))
            return;
        begin_sealed(batch, staging);
        for (uint32_t i = 0; i < burst; i++) {
            uint8_t header[ROCE_SEND_HEADER_BYTES];
            write_control_header(endpoint, &first[i], header);
            header[UDP_EPOCH_OFFSET] = udp_keys_received(keys);
            const struct seal_text text = {header, sizeof header, first[i].data, first[i].bytes};
            add_sealed(batch, staging, &keys->control, endpoint->peer.control_qpn, &text);
        }
        end_sealed(batch, staging, bytes, false, first->corrupt_bit);
    }
}

static __attribute__((noinline)) int control_send_clear(struct udp_endpoint *endpoint,
                                                        const struct sending *sending,
                                                        const struct fabric_datagram *datagrams,
                                                        uint32_t count)
{
    struct control_path path = control_path(endpoint);
    struct batch batch;
    uint32_t taken = 0;
    uint64_t wire_bytes = 0; /* only those of data are counted */
    while (taken < count) {  /* each round takes a datagram, drops GSO for good, or was interrupted */
        uint32_t left = count - taken;
        lay_out_control(endpoint, &batch, &path, datagrams + taken,
                        left < FABRIC_BATCH_MAX ? left : FABRIC_BATCH_MAX);
        int gone = send_laid_out(sending, &batch, &wire_bytes);
        if (gone == SEND_FULL)
            break;
        if (gone < 0)
            return taken > 0 ? (int)taken : gone;
        taken += (uint32_t)gone;
    }
    return (int)taken;
}

static __attribute__((noinline)) int control_send_sealed(struct udp_endpoint *endpoint,
                                                         const struct sending *sending,
                                                         const struct fabric_datagram *datagrams,
                                                         uint32_t count)
{
    struct control_path path = control_path(endpoint);
    struct staging staging;
    struct batch batch;
    uint32_t taken = 0;
    uint64_t wire_bytes = 0;
    while (taken < count) { /* each round takes a datagram, drops GSO for good, or was interrupted */
        uint32_t left = count - taken;
        int gone = SEND_FULL;
        if (udp_keys_may_seal(endpoint->keys, &endpoint->keys->control)) {
            lay_out_control_sealed(endpoint, &batch, &staging, &path, datagrams + taken,
                                   left < FABRIC_BATCH_MAX ? left : FABRIC_BATCH_MAX);
            gone = send_laid_out(sending, &batch, &wire_bytes);
        }
        if (gone == SEND_FULL)
            break;
        if (gone < 0)
            return taken > 0 ? (int)taken : gone;
        taken += (uint32_t)gone;
    }
    return (int)taken;
}

int udp_control_send(struct fabric_endpoint *base, const struct fabric_datagram *datagrams, uint32_t count)
{
    struct udp_endpoint *endpoint = udp_endpoint_of(base);
    const struct udp_fabric *fabric = udp_fabric_of(endpoint);
    const struct sending sending = {endpoint, fabric->front.fd, fabric->front.port, &endpoint->control_gso,
                                    NULL};
    assert(endpoint->connected);
    if (atomic_load_explicit(&endpoint->punching, memory_order_acquire))
        udp_punch_due(endpoint);
    return endpoint->keys != NULL ? control_send_sealed(endpoint, &sending, datagrams, count)
                                  : control_send_clear(endpoint, &sending, datagrams, count);
}

/* ---- cnp ------------------------------------------------------------------------------------------- */

static void build(const struct udp_endpoint *endpoint, const union udp_address *to, uint32_t qpn,
                  uint8_t out[ROCE_CNP_BYTES])
{
    const struct udp_fabric *fabric = udp_fabric_of(endpoint);
    struct icrc_flow flow = {
        .ipv4 = udp_address_is_ipv4(&fabric->local),
        .source_port = fabric->front.port,
        .destination_port = udp_address_port(to),
    };
    udp_address_bytes(&fabric->local, flow.source);
    udp_address_bytes(to, flow.destination);
    const struct roce_packet packet = {.opcode = ROCE_CNP, .dest_qpn = qpn};
    size_t header = roce_encode_header(&packet, out);
    icrc_store(icrc_add_header(icrc_begin(&flow, ROCE_CNP_BYTES, 0, true), out, header), out + header);
}

void udp_cnp_on_marked(struct udp_channel *channel, uint8_t generation)
{
    const struct udp_endpoint *endpoint = channel->endpoint;
    struct udp_fabric *fabric = udp_fabric_of(endpoint);
    lh_time *last_ns = &channel->generations[generation].cnp_ns;
    lh_time now = fabric->base.ops->now(&fabric->base);
    assert(endpoint->peer.fabric == QP_INFO_VERBS && generation < endpoint->peer.generations);
    if (*last_ns != 0 && now - *last_ns < UDP_CNP_INTERVAL_NS)
        return;
    *last_ns = now;
    /* From the front, which is not ECN-capable: a notification must not be marked itself. */
    union udp_address to = endpoint->peer_address;
    udp_address_set_port(&to, ROCE_UDP_PORT);
    uint8_t packet[ROCE_CNP_BYTES];
    build(endpoint, &to, channel->generations[generation].peer_qpn, packet);
    /* One that is lost is followed by others while marks arrive. */
    (void)sendto(fabric->front.fd, packet, sizeof packet, MSG_DONTWAIT, &to.any, udp_address_size(&to));
}
