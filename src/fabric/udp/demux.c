/*
 * demux.c - the front socket: control datagrams of all endpoints of a fabric, and data packets of hardware
 * peers.
 *
 * Whoever polls for control reads it for all (under the fabric's lock), and what is another's is put aside
 * in bounded inboxes. A control datagram is checked up to its iCRC here; whether it comes from the peer is
 * asked when it is handed out, since it may arrive before its endpoint is connected. A data packet is only
 * sorted: its channel validates it. A congestion notification is validated and counted here. A packet without
 * an owner is counted at the endpoint that found it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/demux.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fabric/udp/punch.h"
#include "fabric/udp/tx.h"

#define BATCH 16u
/* Batches that one poll reads, so that a flood cannot hold it. */
#define ROUNDS_MAX         4u
#define CONTROL_PACKET_MAX (ROCE_SEND_HEADER_BYTES + CONTROL_MESSAGE_MAX + ROCE_ICRC_BYTES)

struct udp_demux {
    struct mmsghdr messages[BATCH];
    struct iovec iov[BATCH];
    union udp_address from[BATCH];
    _Alignas(struct cmsghdr) uint8_t control[BATCH][CMSG_SPACE(sizeof(int))]; /* the traffic class */
    uint8_t data[BATCH][UDP_INBOX_PACKET_BYTES];
};

int udp_demux_open(struct udp_fabric *fabric)
{
    fabric->demux = calloc(1, sizeof *fabric->demux);
    if (fabric->demux == NULL)
        return lh_fail(LH_ENOMEM, "no memory for a fabric");
    pthread_mutex_init(&fabric->lock, NULL);
    return 0;
}

void udp_demux_close(struct udp_fabric *fabric)
{
    assert(fabric->qps.count == 0);
    qpn_table_free(&fabric->qps);
    pthread_mutex_destroy(&fabric->lock);
    free(fabric->demux);
}

static struct lh_stats *stats_of(const struct udp_endpoint *endpoint)
{
    return endpoint->table.attr.stats;
}

static bool front_icrc_holds(const struct udp_fabric *fabric, const union udp_address *from,
                             const uint8_t *data, uint32_t bytes)
{
    struct icrc_flow flow = {
        .ipv4 = udp_address_is_ipv4(&fabric->local),
        .source_port = udp_address_port(from),
        .destination_port = fabric->front.port,
    };
    udp_address_bytes(from, flow.source);
    udp_address_bytes(&fabric->local, flow.destination);
    return icrc_check(&flow, data, bytes);
}

/* As the sender knows itself, which is in the iCRC: behind NAT it is seen elsewhere. */
static union udp_address sender_of(const struct udp_endpoint *owner, const union udp_address *from)
{
    union udp_address sender = *from;
    if (!owner->connected || !owner->peer.translated || !udp_address_same_host(from, &owner->seen_address))
        return sender;
    sender = owner->peer_address;
    udp_address_set_port(&sender, owner->peer.control_port);
    return sender;
}

/* A datagram for a control QP of this fabric. `reader` is the endpoint that polls. */
static void sort_control(struct udp_endpoint *owner, const struct udp_endpoint *reader,
                         const union udp_address *from, const uint8_t *data, uint32_t bytes,
                         const struct roce_packet *packet)
{
    if (packet->opcode != ROCE_UC_SEND_ONLY) {
        fabric_count(stats_of(owner), bad_header, 1);
        return;
    }
    if (packet->payload_bytes > CONTROL_MESSAGE_MAX) {
        fabric_count(stats_of(owner), bad_length, 1);
        return;
    }
    union udp_address sender = sender_of(owner, from);
    if (!front_icrc_holds(udp_fabric_of(owner), &sender, data, bytes)) {
        fabric_count(stats_of(owner), bad_icrc, 1);
        return;
    }
    if (owner->control_count == UDP_CONTROL_INBOX) {
        fabric_count(stats_of(owner), rx_inbox_overflow, 1);
        return;
    }
    uint32_t last = (owner->control_first + owner->control_count) % UDP_CONTROL_INBOX;
    struct udp_control_waiting *waiting = &owner->control[last];
    waiting->from = *from;
    waiting->arrival.bytes = packet->payload_bytes;
    memcpy(waiting->arrival.data, packet->payload, packet->payload_bytes);
    owner->control_count++;
    const struct fabric_endpoint_attr *attr = &owner->table.attr;
    if (owner != reader && owner->control_count == 1 && attr->wake != NULL)
        attr->wake(attr->wake_context, FABRIC_CONTROL);
}

/* A packet for a data QP: copied as it is. */
static void sort_data(const struct udp_qp *qp, const union udp_address *from, const uint8_t *data,
                      uint32_t bytes, bool marked)
{
    const struct fabric_endpoint_attr *attr = &qp->endpoint->table.attr;
    /* A peer of our kind sends data to the channel's own port, so nothing of it belongs here. */
    struct udp_inbox *inbox = qp->endpoint->connected ? qp->endpoint->channels[qp->channel]->inbox : NULL;
    if (inbox == NULL) {
        fabric_count(attr->stats, bad_channel, 1);
        return;
    }
    bool was_empty = udp_inbox_peek(inbox) == NULL;
    if (!udp_inbox_put(inbox, from, data, bytes, marked)) {
        fabric_count(attr->stats, rx_inbox_overflow, 1);
        return;
    }
    if (was_empty && attr->wake != NULL)
        attr->wake(attr->wake_context, qp->channel);
}

/* What RoCE hardware sends when our packets reach it marked, at most one per 50 us or so for each QP. It
 * comes from any port, as all that hardware sends. */
static void on_notification(const struct udp_endpoint *owner, const union udp_address *from,
                            const uint8_t *data, uint32_t bytes)
{
    if (!owner->connected || !udp_address_same_host(from, &owner->peer_address))
        fabric_count(stats_of(owner), bad_source, 1);
    else if (!front_icrc_holds(udp_fabric_of(owner), from, data, bytes))
        fabric_count(stats_of(owner), bad_icrc, 1);
    else
        fabric_count(stats_of(owner), rx_congestion_notifications, 1);
}

static void sort_datagram(struct udp_endpoint *reader, const union udp_address *from, const uint8_t *data,
                          uint32_t bytes, bool marked)
{
    struct roce_packet packet;
    enum roce_verdict verdict = roce_decode(data, bytes, &packet);
    if (verdict == ROCE_BAD_HEADER) {
        fabric_count(stats_of(reader), bad_header, 1);
        return;
    }
    if (verdict == ROCE_BAD_LENGTH) {
        fabric_count(stats_of(reader), bad_length, 1);
        return;
    }
    const struct udp_qp *qp = qpn_table_find(&udp_fabric_of(reader)->qps, packet.dest_qpn);
    if (qp == NULL)
        fabric_count(stats_of(reader), bad_qpn, 1);
    else if (packet.opcode == ROCE_CNP)
        on_notification(qp->endpoint, from, data, bytes);
    else if (qp->channel == UDP_QP_CONTROL)
        sort_control(qp->endpoint, reader, from, data, bytes, &packet);
    else
        sort_data(qp, from, data, bytes, marked);
}

static bool is_marked(struct msghdr *header)
{
    const struct cmsghdr *cmsg = CMSG_FIRSTHDR(header);
    return cmsg != NULL && udp_cmsg_is_marked(cmsg);
}

/* Reads one batch; false when nothing more waits. Under the lock. */
static bool read_batch(struct udp_fabric *fabric, struct udp_endpoint *reader)
{
    struct udp_demux *demux = fabric->demux;
    for (uint32_t i = 0; i < BATCH; i++) {
        demux->iov[i] = (struct iovec){demux->data[i], sizeof demux->data[i]};
        demux->messages[i].msg_hdr = (struct msghdr){
            .msg_name = &demux->from[i],
            .msg_namelen = sizeof demux->from[i],
            .msg_iov = &demux->iov[i],
            .msg_iovlen = 1,
            .msg_control = demux->control[i],
            .msg_controllen = sizeof demux->control[i],
        };
    }
    int count = recvmmsg(fabric->front.fd, demux->messages, BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < count; i++) {
        struct msghdr *header = &demux->messages[i].msg_hdr;
        if (header->msg_flags & MSG_TRUNC)
            fabric_count(stats_of(reader), bad_length, 1);
        else
            sort_datagram(reader, &demux->from[i], demux->data[i], demux->messages[i].msg_len,
                          is_marked(header));
    }
    return count == (int)BATCH;
}

/* What the socket holds waits; what an inbox has no room for is lost. */
static bool inboxes_have_room(const struct udp_endpoint *endpoint)
{
    for (uint32_t i = 0; i < endpoint->table.attr.channels; i++) {
        struct udp_inbox *inbox = endpoint->channels[i]->inbox;
        if (inbox != NULL && !udp_inbox_has_room(inbox, BATCH))
            return false;
    }
    return true;
}

static void read_front(struct udp_fabric *fabric, struct udp_endpoint *reader)
{
    for (uint32_t i = 0; i < ROUNDS_MAX && inboxes_have_room(reader); i++) {
        if (!read_batch(fabric, reader))
            break;
    }
}

void udp_demux_try(struct udp_endpoint *endpoint)
{
    struct udp_fabric *fabric = udp_fabric_of(endpoint);
    if (pthread_mutex_trylock(&fabric->lock) != 0)
        return; /* another thread is at it */
    read_front(fabric, endpoint);
    pthread_mutex_unlock(&fabric->lock);
}

static bool came_by_nat(const struct udp_endpoint *endpoint, const union udp_address *from)
{
    return endpoint->peer.translated && udp_address_same_host(from, &endpoint->seen_address);
}

static bool control_source_is_peer(const struct udp_endpoint *endpoint, const union udp_address *from)
{
    if (came_by_nat(endpoint, from))
        return true;
    if (!udp_address_same_host(from, &endpoint->peer_address))
        return false;
    return endpoint->peer.fabric == QP_INFO_VERBS || udp_address_port(from) == endpoint->peer.control_port;
}

/* Under the lock. */
static uint32_t hand_out_control(struct udp_endpoint *endpoint, struct fabric_control_arrival *arrivals,
                                 uint32_t room)
{
    uint32_t taken = 0;
    while (endpoint->connected && endpoint->control_count > 0 && taken < room) { /* bounded by the ring */
        const struct udp_control_waiting *waiting = &endpoint->control[endpoint->control_first];
        if (control_source_is_peer(endpoint, &waiting->from)) {
            arrivals[taken].bytes = waiting->arrival.bytes;
            memcpy(arrivals[taken].data, waiting->arrival.data, waiting->arrival.bytes);
            arrivals[taken].source =
                came_by_nat(endpoint, &waiting->from) ? udp_address_port(&waiting->from) : 0;
            taken++;
        } else {
            fabric_count(stats_of(endpoint), bad_source, 1);
        }
        endpoint->control_first = (endpoint->control_first + 1) % UDP_CONTROL_INBOX;
        endpoint->control_count--;
    }
    return taken;
}

int udp_control_poll(struct fabric_endpoint *endpoint, struct fabric_control_arrival *arrivals,
                     uint32_t count)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    struct udp_fabric *fabric = udp_fabric_of(udp);
    pthread_mutex_lock(&fabric->lock);
    uint32_t taken = hand_out_control(udp, arrivals, count);
    if (taken < count) {
        read_front(fabric, udp);
        taken += hand_out_control(udp, arrivals + taken, count - taken);
    }
    pthread_mutex_unlock(&fabric->lock);
    return (int)taken;
}

void udp_control_proven(struct fabric_endpoint *endpoint, const struct fabric_control_arrival *arrival)
{
    if (arrival->source != 0)
        atomic_store_explicit(&udp_endpoint_of(endpoint)->seen_port, arrival->source, memory_order_relaxed);
}

static uint32_t build_control(struct udp_endpoint *endpoint, const struct icrc_flow *flow,
                              const struct fabric_datagram *datagram, uint8_t out[CONTROL_PACKET_MAX])
{
    assert(datagram->bytes <= CONTROL_MESSAGE_MAX);
    struct roce_packet packet = {
        .opcode = ROCE_UC_SEND_ONLY,
        .dest_qpn = endpoint->peer.control_qpn,
        .psn = endpoint->control_psn,
        .payload_bytes = datagram->bytes,
    };
    endpoint->control_psn = (packet.psn + 1) & ROCE_PSN_MASK;
    size_t header = roce_encode_header(&packet, out);
    uint32_t pad = roce_pad_bytes(datagram->bytes);
    memcpy(out + header, datagram->data, datagram->bytes);
    memset(out + header + datagram->bytes, 0, pad);
    size_t covered = header + datagram->bytes + pad;
    uint32_t bytes = (uint32_t)(covered + ROCE_ICRC_BYTES);
    icrc_store(icrc_add_header(icrc_begin(flow, bytes, 0, true), out, covered), out + covered);
    if (datagram->corrupt_bit != 0) {
        uint32_t bit = (datagram->corrupt_bit - 1) % (8 * bytes);
        out[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    return bytes;
}

int udp_control_send(struct fabric_endpoint *endpoint, const struct fabric_datagram *datagrams,
                     uint32_t count)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    const struct udp_fabric *fabric = udp_fabric_of(udp);
    assert(udp->connected);
    bool hardware = udp->peer.fabric == QP_INFO_VERBS;
    uint16_t seen_port = atomic_load_explicit(&udp->seen_port, memory_order_relaxed);
    union udp_address known = udp->peer_address; /* to the peer itself */
    udp_address_set_port(&known, hardware ? ROCE_UDP_PORT : udp->peer.control_port);
    union udp_address to = known;
    if (seen_port != 0) {
        to = udp->seen_address;
        udp_address_set_port(&to, seen_port);
    }
    struct icrc_flow flow = {
        .ipv4 = udp_address_is_ipv4(&fabric->local),
        .source_port = fabric->front.port,
        .destination_port = udp_address_port(&known),
    };
    udp_address_bytes(&fabric->local, flow.source);
    udp_address_bytes(&known, flow.destination);
    if (atomic_load_explicit(&udp->punching, memory_order_acquire))
        udp_punch_due(udp);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t packet[CONTROL_PACKET_MAX];
        uint32_t bytes = build_control(udp, &flow, &datagrams[i], packet);
        ssize_t sent =
            sendto(fabric->front.fd, packet, bytes, MSG_DONTWAIT, &to.any, udp_address_size(&to));
        if (sent >= 0 || errno == EINTR || udp_send_error_is_loss(errno))
            continue; /* an interrupted one counts as lost */
        if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
            fabric_count(stats_of(udp), tx_backpressure, 1);
            return (int)i;
        }
        int error =
            lh_fail(LH_EDEVICE, "cannot send from UDP port %u: %s", fabric->front.port, strerror(errno));
        return i > 0 ? (int)i : error;
    }
    return (int)count;
}
