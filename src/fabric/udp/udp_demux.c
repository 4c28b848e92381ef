/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/udp_parts.h"

#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "fabric/udp/udp_state.h"

/* ---- demux ----------------------------------------------------------------------------------------- */

/*
 * The sockets that several endpoints share: the front, with control datagrams of all endpoints of a
 * fabric and data packets of hardware peers, and the shared data socket of each channel index.
 *
 * Whoever polls reads for all (under the fabric's lock), and what is another's is put aside in bounded
 * inboxes. A control datagram is checked up to its iCRC here; whether it comes from the peer is asked when it
 * is handed out, since it may arrive before its endpoint is connected. A data packet is only sorted, by its
 * QPN, and must come from the peer of the endpoint that the QPN names: its channel validates all else, and
 * only then is a byte of it copied to a user's buffer. A congestion notification is validated and counted
 * here. A packet without an owner is counted at the endpoint that found it.
 */

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define BATCH 8u
/* Batches that one poll reads, so that a flood cannot hold it. */
#define ROUNDS_MAX 4u
/* The kernel joins no more datagrams (UDP_GRO_CNT_MAX). */
#define JOINED_MAX 64u
/* In the place of a channel index. */
#define FRONT UDP_QP_CONTROL

struct udp_demux {
    struct mmsghdr messages[BATCH];
    struct iovec iov[BATCH];
    union udp_address from[BATCH];
    /* The traffic class, and GRO's segment size. */
    _Alignas(struct cmsghdr) uint8_t control[BATCH][2 * CMSG_SPACE(sizeof(int))];
    uint8_t data[BATCH][UDP_MESSAGE_MAX];
    /* When it was read last for an endpoint. What comes next is mostly one message: it is read alone, and
     * the next read takes a batch. */
    bool front_empty;
};

/* Where control messages of an endpoint are handed out. */
struct handout {
    struct fabric_control_arrival *arrivals;
    uint32_t room;
    uint32_t taken;
};

/* Who reads what. */
struct reading {
    struct udp_fabric *fabric;
    uint32_t at;                   /* channel index of the socket, or FRONT */
    struct udp_endpoint *endpoint; /* on whose behalf; NULL: all of them */
    struct lh_stats *stats;        /* of packets without an owner */
    struct handout *control;       /* of the endpoint, which has none in its inbox; or NULL */
};

int udp_demux_open(struct udp_fabric *fabric)
{
    fabric->readable = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = FRONT};
    if (fabric->readable < 0 || epoll_ctl(fabric->readable, EPOLL_CTL_ADD, fabric->front.fd, &event) != 0) {
        int error = lh_fail(LH_ESYSTEM, "cannot watch a UDP socket: %s", strerror(errno));
        if (fabric->readable >= 0)
            close(fabric->readable);
        return error;
    }
    fabric->demux = calloc(1, sizeof *fabric->demux);
    if (fabric->demux == NULL) {
        close(fabric->readable);
        return lh_fail(LH_ENOMEM, "no memory for a fabric");
    }
    fabric->packets.packet_bytes = UDP_INBOX_PACKET_BYTES;
    fabric->control.packet_bytes = SEAL_BYTES + ROCE_SEND_HEADER_BYTES + CONTROL_PROBE_MAX;
    pthread_mutex_init(&fabric->lock, NULL);
    return 0;
}

void udp_demux_close(struct udp_fabric *fabric)
{
    assert(fabric->qps.count == 0);
    qpn_table_free(&fabric->qps);
    udp_pool_free(&fabric->packets);
    udp_pool_free(&fabric->control);
    pthread_mutex_destroy(&fabric->lock);
    free(fabric->demux);
    close(fabric->readable);
}

static struct lh_stats *stats_of(const struct udp_endpoint *endpoint)
{
    return endpoint->table.attr.stats;
}

static bool front_icrc_holds(const struct udp_fabric *fabric, const union udp_address *from,
                             const struct udp_part *part)
{
    struct icrc_flow flow = {
        .ipv4 = udp_address_is_ipv4(&fabric->local),
        .source_port = udp_address_port(from),
        .destination_port = fabric->front.port,
    };
    udp_address_bytes(from, flow.source);
    udp_address_bytes(&fabric->local, flow.destination);
    return icrc_check(&flow, part->data, part->bytes, (uint16_t)part->place);
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

void udp_demux_forget_early(struct udp_endpoint *endpoint)
{
    if (!endpoint->connected)
        udp_fabric_of(endpoint)->early -= udp_inbox_waiting(&endpoint->control);
}

static enum udp_put put_control(struct udp_fabric *fabric, struct udp_endpoint *owner,
                                const struct udp_part *message)
{
    bool early = !owner->connected;
    if (early && (udp_inbox_waiting(&owner->control) >= UDP_EARLY_INBOX || fabric->early >= UDP_EARLY_MAX))
        return UDP_PUT_REFUSED;
    enum udp_put put = udp_inbox_put(&fabric->control, &owner->control, message);
    if (early && put != UDP_PUT_REFUSED)
        fabric->early++;
    return put;
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

/* What the peer has encrypted, in this epoch or so, and once. False: it is counted, and that is all. */
static bool open_control(struct udp_endpoint *endpoint, const struct udp_part *message,
                         struct fabric_control_arrival *arrival)
{
    uint8_t plain[ROCE_SEND_HEADER_BYTES + CONTROL_PROBE_MAX];
    struct udp_keys *keys = endpoint->keys;
    struct roce_packet packet;
    assert(message->bytes <= SEAL_BYTES + sizeof plain);
    enum udp_opened opened =
        udp_keys_open(keys, &keys->control_rx, message->data, message->bytes, endpoint->base.fabric, plain);
    if (opened == UDP_REPLAYED)
        fabric_count(stats_of(endpoint), rx_replays, 1);
    if (opened == UDP_FORGED)
        fabric_count(stats_of(endpoint), rx_auth_failures, 1);
    if (opened == UDP_REPLAYED || opened == UDP_FORGED)
        return false;
    if (!udp_sealed_decode(plain, message->bytes - SEAL_BYTES, &packet) ||
        packet.opcode != ROCE_UC_SEND_ONLY || packet.dest_qpn != endpoint->control_qpn) {
        fabric_count(stats_of(endpoint), bad_header, 1); /* the peer itself made it */
        return false;
    }
    udp_keys_confirm(keys, plain[UDP_EPOCH_OFFSET]);
    arrival->bytes = packet.payload_bytes;
    memcpy(arrival->data, packet.payload, packet.payload_bytes);
    /* An older one says nothing of where the peer is now. */
    bool moves = opened == UDP_OPENED_NEWEST && came_by_nat(endpoint, message->from);
    arrival->source = moves ? udp_address_port(message->from) : 0;
    return true;
}

/* There is room, and the endpoint is connected. */
static void hand_out(struct udp_endpoint *endpoint, struct handout *control, const struct udp_part *message)
{
    struct fabric_control_arrival *arrival = &control->arrivals[control->taken];
    if (!control_source_is_peer(endpoint, message->from)) {
        fabric_count(stats_of(endpoint), bad_source, 1);
    } else if (endpoint->keys != NULL) {
        if (message->sealed)
            control->taken += open_control(endpoint, message, arrival);
        else
            fabric_count(stats_of(endpoint), rx_auth_failures, 1);
    } else if (message->sealed) {
        fabric_count(stats_of(endpoint), bad_header, 1);
    } else {
        control->taken++;
        arrival->bytes = message->bytes;
        memcpy(arrival->data, message->data, message->bytes);
        arrival->source = came_by_nat(endpoint, message->from) ? udp_address_port(message->from) : 0;
    }
}

/* A control datagram, or one that is still encrypted: to its owner, now or by the inbox. */
static void pass_control(const struct reading *reading, struct udp_endpoint *owner,
                         const struct udp_part *message)
{
    bool comes_for_it = owner == reading->endpoint && reading->control != NULL;
    if (comes_for_it && reading->control->taken < reading->control->room) {
        hand_out(owner, reading->control, message);
        return;
    }
    enum udp_put put = put_control(reading->fabric, owner, message);
    if (put == UDP_PUT_REFUSED) {
        fabric_count(stats_of(owner), rx_inbox_overflow, 1);
        return;
    }
    const struct fabric_endpoint_attr *attr = &owner->table.attr;
    if (!comes_for_it && put == UDP_PUT_FIRST && attr->wake != NULL)
        attr->wake(attr->wake_context, FABRIC_CONTROL);
}

/* A datagram for a control QP of this fabric. */
static void sort_control(const struct reading *reading, struct udp_endpoint *owner,
                         const struct udp_part *part, const struct roce_packet *packet)
{
    if (packet->opcode != ROCE_UC_SEND_ONLY) {
        fabric_count(stats_of(owner), bad_header, 1);
        return;
    }
    if (packet->payload_bytes > CONTROL_PROBE_MAX) {
        fabric_count(stats_of(owner), bad_length, 1);
        return;
    }
    union udp_address sender = sender_of(owner, part->from);
    if (!front_icrc_holds(reading->fabric, &sender, part)) {
        fabric_count(stats_of(owner), bad_icrc, 1);
        return;
    }
    const struct udp_part message = {
        .from = part->from, .data = packet->payload, .bytes = packet->payload_bytes};
    pass_control(reading, owner, &message);
}

/* Whether the owner of the QP would take a data packet from there, at that socket; counts what is wrong. */
static bool data_belongs(const struct udp_qp *qp, uint32_t at, const union udp_address *from)
{
    const struct udp_endpoint *owner = qp->endpoint;
    struct lh_stats *stats = stats_of(owner);
    bool hardware = owner->connected && owner->peer.fabric != QP_INFO_UDP;
    if (at != FRONT && qp->channel != at) /* of another port */
        fabric_count(stats, bad_qpn, 1);
    else if (!owner->connected || !udp_source_is_peer(owner, qp->channel, from))
        fabric_count(stats, bad_source, 1);
    else if (hardware != (at == FRONT)) /* hardware sends to the front, our kind to the channel's port */
        fabric_count(stats, bad_channel, 1);
    else
        return true;
    return false;
}

/* A packet for a data QP: copied as it is. */
static void sort_data(const struct reading *reading, const struct udp_qp *qp, const struct udp_part *part)
{
    if (!data_belongs(qp, reading->at, part->from))
        return;
    const struct fabric_endpoint_attr *attr = &qp->endpoint->table.attr;
    struct udp_channel *channel = qp->endpoint->channels[qp->channel];
    enum udp_put put = udp_inbox_put(&reading->fabric->packets, &channel->inbox, part);
    if (put == UDP_PUT_REFUSED) {
        fabric_count(attr->stats, rx_inbox_overflow, 1);
        return;
    }
    if (reading->at != FRONT)
        atomic_store_explicit(&channel->rx.was_shared, true, memory_order_relaxed);
    bool reads_itself = qp->endpoint == reading->endpoint && qp->channel == reading->at;
    if (put == UDP_PUT_FIRST && !reads_itself && attr->wake != NULL)
        attr->wake(attr->wake_context, qp->channel);
}

/* What RoCE hardware sends when our packets reach it marked, at most one per 50 us or so for each QP. It
 * comes from any port, as all that hardware sends. */
static void on_notification(const struct udp_endpoint *owner, const struct udp_part *part)
{
    if (!owner->connected || !udp_address_same_host(part->from, &owner->peer_address))
        fabric_count(stats_of(owner), bad_source, 1);
    else if (!front_icrc_holds(udp_fabric_of(owner), part->from, part))
        fabric_count(stats_of(owner), bad_icrc, 1);
    else
        fabric_count(stats_of(owner), rx_congestion_notifications, 1);
}

/* Encrypted, as far as can be seen: its owner opens it. Nothing of it is believed but the QPN. */
static void sort_sealed(const struct reading *reading, const struct udp_part *part)
{
    if (part->bytes < SEAL_BYTES + ROCE_SEND_HEADER_BYTES || part->bytes > UDP_INBOX_PACKET_BYTES) {
        fabric_count(reading->stats, bad_length, 1);
        return;
    }
    const struct udp_qp *qp =
        qpn_table_find(&reading->fabric->qps, lh_get_be24(part->data + ROCE_QPN_OFFSET));
    if (qp == NULL || (qp->channel == UDP_QP_CONTROL && reading->at != FRONT)) {
        fabric_count(reading->stats, bad_qpn, 1);
    } else if (qp->channel != UDP_QP_CONTROL) {
        sort_data(reading, qp, part);
    } else if (part->bytes > reading->fabric->control.packet_bytes) {
        fabric_count(stats_of(qp->endpoint), bad_length, 1);
    } else {
        struct udp_part message = *part;
        message.sealed = true;
        pass_control(reading, qp->endpoint, &message);
    }
}

static void sort_part(const struct reading *reading, const struct udp_part *part)
{
    struct roce_packet packet;
    if (part->bytes > 0 && part->data[0] == SEAL_NEXT_HEADER) {
        sort_sealed(reading, part);
        return;
    }
    enum roce_verdict verdict = roce_decode(part->data, part->bytes, &packet);
    if (verdict == ROCE_BAD_HEADER) {
        fabric_count(reading->stats, bad_header, 1);
        return;
    }
    if (verdict == ROCE_BAD_LENGTH || part->bytes > UDP_INBOX_PACKET_BYTES) {
        fabric_count(reading->stats, bad_length, 1);
        return;
    }
    const struct udp_qp *qp = qpn_table_find(&reading->fabric->qps, packet.dest_qpn);
    if (qp == NULL)
        fabric_count(reading->stats, bad_qpn, 1);
    else if (qp->channel == UDP_QP_CONTROL && reading->at != FRONT)
        fabric_count(reading->stats, bad_qpn, 1);
    else if (qp->endpoint->keys != NULL) /* in clear text */
        fabric_count(stats_of(qp->endpoint), rx_auth_failures, 1);
    else if (packet.opcode == ROCE_CNP && reading->at == FRONT)
        on_notification(qp->endpoint, part);
    else if (qp->channel == UDP_QP_CONTROL)
        sort_control(reading, qp->endpoint, part, &packet);
    else
        sort_data(reading, qp, part);
}

static void sort_message(const struct reading *reading, struct msghdr *header, uint32_t bytes)
{
    uint32_t part_bytes = bytes;
    struct udp_part part = {.from = header->msg_name, .data = header->msg_iov->iov_base};
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c != NULL; c = CMSG_NXTHDR(header, c)) {
        int size = 0;
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
            memcpy(&size, CMSG_DATA(c), sizeof size);
        else if (udp_cmsg_is_marked(c))
            part.marked = true;
        if (size > 0)
            part_bytes = (uint32_t)size;
    }
    if (bytes == 0)
        fabric_count(reading->stats, bad_header, 1);
    for (uint32_t left = bytes; left > 0; left -= part.bytes) { /* each round takes a byte or more */
        part.bytes = left < part_bytes ? left : part_bytes;
        sort_part(reading, &part);
        part.data += part.bytes;
        part.place++;
    }
}

static void prepare(struct udp_demux *demux, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
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
}

/* Reads up to `most` messages; returns their number. Under the lock. */
static uint32_t read_batch(const struct reading *reading, int fd, uint32_t maximum)
{
    struct udp_demux *demux = reading->fabric->demux;
    prepare(demux, maximum);
    if (maximum ==
        1) { /* half the work for the kernel, and less to prepare: the latency of a message alone */
        ssize_t bytes = recvmsg(fd, &demux->messages[0].msg_hdr, MSG_DONTWAIT);
        if (bytes < 0)
            return 0;
        sort_message(reading, &demux->messages[0].msg_hdr, (uint32_t)bytes);
        return 1;
    }
    int count = recvmmsg(fd, demux->messages, maximum, MSG_DONTWAIT, NULL);
    for (int i = 0; i < count; i++)
        sort_message(reading, &demux->messages[i].msg_hdr, demux->messages[i].msg_len);
    return count > 0 ? (uint32_t)count : 0;
}

static bool takes_a_batch(struct udp_packet_pool *pool, struct udp_inbox *inbox)
{
    return udp_inbox_waiting(inbox) == 0 || udp_inbox_has_room(pool, inbox, BATCH * JOINED_MAX);
}

/* Asks of each endpoint, one after the other, until one without control messages may take another's turn. */
#define TURNS_EACH 2u

/* What the socket holds waits; what an inbox has no room for is lost. */
static bool inboxes_have_room(const struct reading *reading)
{
    struct udp_fabric *fabric = reading->fabric;
    struct udp_endpoint *endpoint = reading->endpoint;
    bool is_front = reading->at == FRONT;
    bool has_room = is_front ? udp_pool_has_room(&fabric->control, 1 + TURNS_EACH * fabric->endpoints)
                             : udp_pool_has_room(&fabric->packets, 1);
    if (!has_room)
        return false;
    if (endpoint != NULL && is_front && !takes_a_batch(&fabric->control, &endpoint->control))
        return false;
    for (uint32_t i = 0; endpoint != NULL && i < endpoint->table.attr.channels; i++)
        if (!takes_a_batch(&fabric->packets, &endpoint->channels[i]->inbox))
            return false;
    return true;
}

/* Under the lock; adds to *messages. */
static enum udp_left read_socket(const struct reading *reading, int fd, uint32_t *messages)
{
    for (uint32_t i = 0; i < ROUNDS_MAX && inboxes_have_room(reading); i++) {
        uint32_t count = read_batch(reading, fd, BATCH);
        *messages += count;
        if (count < BATCH)
            return UDP_LEFT_NOTHING;
    }
    return UDP_LEFT_MORE;
}

static void read_front(struct udp_fabric *fabric, struct udp_endpoint *reader, struct handout *control)
{
    const struct reading reading = {fabric, FRONT, reader, stats_of(reader), control};
    uint32_t messages = 0;
    if (!fabric->demux->front_empty)
        read_socket(&reading, fabric->front.fd, &messages);
    else if (inboxes_have_room(&reading))
        messages = read_batch(&reading, fabric->front.fd, 1);
    fabric->demux->front_empty = messages == 0;
}

void udp_demux_try(struct udp_endpoint *endpoint)
{
    struct udp_fabric *fabric = udp_fabric_of(endpoint);
    if (pthread_mutex_trylock(&fabric->lock) != 0)
        return; /* another thread is at it */
    read_front(fabric, endpoint, NULL);
    pthread_mutex_unlock(&fabric->lock);
}

enum udp_left udp_demux_shared(struct udp_channel *channel, uint32_t *messages)
{
    struct udp_fabric *fabric = udp_fabric_of(channel->endpoint);
    if (pthread_mutex_trylock(&fabric->lock) != 0)
        return UDP_LEFT_UNKNOWN;
    struct udp_endpoint *endpoint = channel->endpoint;
    const struct reading reading = {fabric, channel->index, endpoint, stats_of(endpoint), NULL};
    enum udp_left left = read_socket(&reading, channel->port->shared.fd, messages);
    pthread_mutex_unlock(&fabric->lock);
    return left;
}

void udp_demux_drain(struct udp_fabric *fabric, int fd, uint32_t index)
{
    const struct reading reading = {fabric, index, NULL, &fabric->strays, NULL};
    uint32_t messages = 0;
    while (read_socket(&reading, fd, &messages) == UDP_LEFT_MORE)
        ; /* ends: nothing is sent to this socket any more */
}

void udp_demux_forward(struct udp_channel *channel, const struct udp_part *part)
{
    struct udp_fabric *fabric = udp_fabric_of(channel->endpoint);
    struct udp_endpoint *endpoint = channel->endpoint;
    const struct reading reading = {fabric, channel->index, endpoint, stats_of(endpoint), NULL};
    pthread_mutex_lock(&fabric->lock);
    sort_part(&reading, part);
    pthread_mutex_unlock(&fabric->lock);
}

/* The port is one that was opened for the bypass, so an index has it. */
static uint32_t index_of_port(const struct udp_fabric *fabric, uint16_t port)
{
    uint32_t index = 0;
    while (index < QP_INFO_CHANNELS_MAX - 1 &&
           (fabric->ports[index] == NULL || fabric->ports[index]->shared.port != port))
        index++;
    return index;
}

void udp_demux_bypassed(struct udp_channel *reader, uint16_t port, const struct udp_part *part)
{
    struct udp_fabric *fabric = udp_fabric_of(reader->endpoint);
    pthread_mutex_lock(&fabric->lock);
    const struct reading reading = {fabric, index_of_port(fabric, port), NULL, stats_of(reader->endpoint),
                                    NULL};
    sort_part(&reading, part);
    pthread_mutex_unlock(&fabric->lock);
}

bool udp_shared_poll(struct fabric *base)
{
    struct udp_fabric *fabric = (struct udp_fabric *)base;
    if (pthread_mutex_trylock(&fabric->lock) != 0)
        return false; /* whoever is at it wakes the owners */
    struct epoll_event events[QP_INFO_CHANNELS_MAX + 1];
    int count = epoll_wait(fabric->readable, events, QP_INFO_CHANNELS_MAX + 1, 0);
    bool more = false;
    for (int i = 0; i < count; i++) {
        const struct reading reading = {fabric, events[i].data.u32, NULL, &fabric->strays, NULL};
        int fd = reading.at == FRONT ? fabric->front.fd : fabric->ports[reading.at]->shared.fd;
        uint32_t messages = 0;
        if (read_socket(&reading, fd, &messages) == UDP_LEFT_MORE)
            more = true;
    }
    pthread_mutex_unlock(&fabric->lock);
    return more;
}

void udp_count_strays(struct udp_fabric *fabric, struct lh_stats *stats)
{
    struct lh_stats *strays = &fabric->strays;
    fabric_count(stats, bad_header, __atomic_exchange_n(&strays->bad_header, 0, __ATOMIC_RELAXED));
    fabric_count(stats, bad_length, __atomic_exchange_n(&strays->bad_length, 0, __ATOMIC_RELAXED));
    fabric_count(stats, bad_qpn, __atomic_exchange_n(&strays->bad_qpn, 0, __ATOMIC_RELAXED));
}

/* What waits in the endpoint's inbox. Under the lock. */
static void hand_out_waiting(struct udp_endpoint *endpoint, struct handout *control)
{
    while (endpoint->connected && control->taken < control->room) { /* bounded by the inbox */
        struct udp_packet *packet = udp_inbox_take(&endpoint->control);
        if (packet == NULL)
            break;
        hand_out(endpoint, control,
                 &(struct udp_part){.from = &packet->from,
                                    .data = packet->data,
                                    .bytes = packet->bytes,
                                    .sealed = packet->sealed});
        udp_packet_return(&udp_fabric_of(endpoint)->control, packet);
    }
}

int udp_control_poll(struct fabric_endpoint *endpoint, struct fabric_control_arrival *arrivals,
                     uint32_t count)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    struct udp_fabric *fabric = udp_fabric_of(udp);
    struct handout control = {.arrivals = arrivals, .room = count};
    pthread_mutex_lock(&fabric->lock);
    if (udp->keys != NULL)
        udp_keys_forget_old(udp->keys, &fabric->base);
    hand_out_waiting(udp, &control);
    if (control.taken < count)
        read_front(fabric, udp, udp->connected ? &control : NULL);
    pthread_mutex_unlock(&fabric->lock);
    return (int)control.taken;
}

void udp_control_proven(struct fabric_endpoint *endpoint, const struct fabric_control_arrival *arrival)
{
    if (arrival->source != 0)
        atomic_store_explicit(&udp_endpoint_of(endpoint)->seen_port, arrival->source, memory_order_relaxed);
}

/* ---- validate -------------------------------------------------------------------------------------- */

/*
 * A message of the kernel: every packet is validated, and put where it belongs.
 *
 * For each packet in a message, in this order: header, QPN, rx_check(), iCRC. Then its payload is copied to
 * its place, which was fetched into the caches while the iCRC was computed. So nothing but a valid packet
 * changes a byte of a receive's buffer.
 *
 * Of an encrypted endpoint: SPI, length, ICV, and then header and rx_check() of what was in it. It is
 * decrypted to memory that stays in the caches, and copied from there: to its place directly would leave
 * bytes of forged packets where no bit is set, and "bounded" delivers buffers with such places.
 */

#define HEADER ROCE_WRITE_IMM_HEADER_BYTES

/* One packet of a message. */
struct segment {
    uint32_t bytes;
    uint32_t index; /* in the message of the kernel */
    const uint8_t *data;
    struct roce_packet packet;
    uint8_t generation;
};

static struct lh_stats *validate_stats_of(const struct udp_channel *channel)
{
    return channel->endpoint->table.attr.stats;
}

/* The finished iCRC of a segment that would have this IP ID (on IPv6: any). Its payload will go to place. */
static uint32_t icrc_of(struct udp_channel *channel, const struct segment *segment, uint32_t ip_id,
                        const uint8_t *place)
{
    struct udp_rx *rx = &channel->rx;
    uint32_t state = udp_prefix_get(&rx->prefix, &rx->flow, segment->bytes, rx->flow.source_port, ip_id);
    state = icrc_add_header(state, segment->data, HEADER);
    return icrc_finish(
        icrc_add_ahead(state, segment->data + HEADER, segment->bytes - HEADER - ROCE_ICRC_BYTES, place));
}

static bool icrc_holds(struct udp_channel *channel, const struct segment *segment, const uint8_t *place)
{
    uint32_t wanted = icrc_load(segment->data + segment->bytes - ROCE_ICRC_BYTES);
    bool ours = channel->endpoint->peer.fabric == QP_INFO_UDP;
    /* A peer of our kind sends GSO bursts with IDs 0, 1, 2 …, and the kernel most often joins them as they
     * were. */
    uint32_t ip_id = ours ? segment->index : 0;
    uint32_t found = icrc_of(channel, segment, ip_id, place);
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
    for (uint32_t i = 0; i < channel->endpoint->table.attr.generations; i++) {
        if (channel->generations[i].qpn == qpn) {
            *generation = (uint8_t)i;
            return true;
        }
    }
    return false;
}

/* Names what the socket's filter cut down to its header. A burst that the kernel joined counts as one. */
static void count_cut(const struct udp_channel *channel, const uint8_t header[HEADER])
{
    uint8_t generation;
    if (header[0] != ROCE_UC_WRITE_ONLY_IMM)
        fabric_count(validate_stats_of(channel), bad_header, 1);
    else if (!find_generation(channel, lh_get_be24(header + ROCE_QPN_OFFSET), &generation))
        fabric_count(validate_stats_of(channel), bad_qpn, 1);
    else
        fabric_count(validate_stats_of(channel), bad_length, 1);
}

/* Of the same peer host and port, which may have other connections to this fabric: the kernel joined their
 * packets. What is nobody's is counted there. */
static void forward(struct udp_channel *channel, const struct segment *segment)
{
    const struct udp_part part = {.from = &channel->rx.from,
                                  .data = segment->data,
                                  .bytes = segment->bytes,
                                  .place = segment->index,
                                  .marked = channel->rx.marked};
    udp_demux_forward(channel, &part);
}

/* Header and QPN; counts what is wrong. */
static bool read_segment(struct udp_channel *channel, struct segment *segment)
{
    if (segment->bytes == HEADER) {
        count_cut(channel, segment->data);
        return false;
    }
    switch (roce_decode(segment->data, segment->bytes, &segment->packet)) {
    case ROCE_OK:
        break;
    case ROCE_BAD_HEADER:
        fabric_count(validate_stats_of(channel), bad_header, 1);
        return false;
    case ROCE_BAD_LENGTH:
        fabric_count(validate_stats_of(channel), bad_length, 1);
        return false;
    }
    if (segment->packet.opcode != ROCE_UC_WRITE_ONLY_IMM) {
        fabric_count(validate_stats_of(channel), bad_header, 1);
        return false;
    }
    if (!find_generation(channel, segment->packet.dest_qpn, &segment->generation)) {
        forward(channel, segment);
        return false;
    }
    return true;
}

/* Of a peer behind NAT. The packet is the peer's: it has the key of a receive, or the proof of a punch. So
 * answers to where it came from reach the peer, also if that has changed. */
static void note_source(struct udp_channel *channel)
{
    const struct udp_endpoint *endpoint = channel->endpoint;
    struct udp_tx *tx = &channel->tx;
    const union udp_address *from = &channel->rx.from;
    if (udp_address_port(from) == udp_address_port(&tx->to) && udp_address_same_host(from, &tx->to))
        return;
    uint16_t port = udp_address_port(from);
    bool seen = udp_address_same_host(from, &endpoint->seen_address);
    if (!seen && atomic_load_explicit(&endpoint->seen_port, memory_order_relaxed) != 0)
        return; /* not from the host that was proven */
    tx->to = seen ? endpoint->seen_address : endpoint->peer_address;
    udp_address_set_port(&tx->to, port);
}

/* It is sent only to show where it comes from. */
static bool is_punch(const struct udp_channel *channel, const struct roce_packet *packet)
{
    const struct udp_peer *peer = &channel->endpoint->peer;
    return peer->translated && packet->payload_bytes == 0 && packet->rkey == 0 && packet->va == 0 &&
           packet->immediate == peer->proof;
}

/* The packet is the peer's, and where rx_check() found that it belongs. newest: nothing that came before
 * left later, as far as can be known. */
static inline void take_segment(struct udp_channel *channel, const struct segment *segment,
                                enum rx_verdict verdict, uint8_t *place, bool newest)
{
    struct udp_rx *rx = &channel->rx;
    const struct roce_packet *packet = &segment->packet;
    rx_count(channel->endpoint->table.attr.stats, verdict);
    if (verdict == RX_LATE)
        rx->proven++;
    if (verdict > RX_DUPLICATE)
        return;
    if (channel->endpoint->peer.translated && newest)
        note_source(channel);
    if (place != NULL)
        lh_copy(place, segment->data + HEADER, packet->payload_bytes);
    uint32_t bytes = packet->payload_bytes;
    if (verdict == RX_PIECE)
        bytes = rx_on_piece(&channel->endpoint->table, packet, channel->index);
    if (verdict == RX_PIECE && bytes == 0)
        return;
    rx->proven++;
    const struct fabric_arrival arrival = {packet->immediate, (uint16_t)bytes, segment->generation};
    udp_arrivals_add(&rx->arrivals, &arrival);
}

static inline enum rx_verdict check_segment(struct udp_channel *channel, const struct segment *segment,
                                            uint8_t **place)
{
    enum rx_verdict verdict =
        rx_check(&channel->endpoint->table, &segment->packet, channel->index, segment->generation, place);
    if (verdict > RX_PIECE || segment->packet.payload_bytes == 0)
        *place = NULL;
    return verdict;
}

static void validate_segment(struct udp_channel *channel, struct segment *segment)
{
    uint8_t *place = NULL;
    if (!read_segment(channel, segment))
        return;
    enum rx_verdict verdict = check_segment(channel, segment, &place);
    if (!icrc_holds(channel, segment, place)) {
        fabric_count(validate_stats_of(channel), bad_icrc, 1);
        return;
    }
    if (is_punch(channel, &segment->packet)) {
        note_source(channel);
        return;
    }
    take_segment(channel, segment, verdict, place, true);
}

/* ---- encrypted packets ------------------------------------------------------------------------------- */

/* Names what the socket's filter cut. */
static void count_cut_sealed(const struct udp_channel *channel, const uint8_t header[HEADER])
{
    uint8_t generation;
    if (header[0] != SEAL_NEXT_HEADER)
        fabric_count(validate_stats_of(channel), rx_auth_failures, 1);
    else if (!find_generation(channel, lh_get_be24(header + ROCE_QPN_OFFSET), &generation))
        fabric_count(validate_stats_of(channel), bad_qpn, 1);
    else
        fabric_count(validate_stats_of(channel), bad_length, 1);
}

/* Opens a packet that says that it is for this channel; plain holds UDP_PACKET_MAX. */
static enum udp_opened open_segment(struct udp_channel *channel, const struct segment *segment,
                                    uint8_t *plain, bool *is_punch_key)
{
    struct udp_endpoint *endpoint = channel->endpoint;
    struct udp_channel_keys *own = &endpoint->keys->channel[channel->index];
    uint32_t bytes = segment->bytes;
    if (bytes < SEAL_BYTES + HEADER || bytes > SEAL_BYTES + HEADER + endpoint->table.attr.mtu_bytes)
        return UDP_FORGED;
    *is_punch_key = segment->data[SEAL_KIND_OFFSET] == SEAL_PUNCH;
    struct udp_rx_key *rx = *is_punch_key ? &own->punch : &own->data;
    return udp_keys_open(endpoint->keys, rx, segment->data, bytes, endpoint->base.fabric, plain);
}

/* In clear text, for another queue pair, or not what the peer has encrypted: false, and counted. */
static bool read_sealed(struct udp_channel *channel, const struct segment *segment, uint32_t *qpn,
                        uint8_t *generation)
{
    if (segment->bytes == HEADER) {
        count_cut_sealed(channel, segment->data);
        return false;
    }
    if (segment->bytes <= SEAL_BYTES || segment->data[0] != SEAL_NEXT_HEADER) {
        fabric_count(validate_stats_of(channel), rx_auth_failures, 1);
        return false;
    }
    *qpn = lh_get_be24(segment->data + ROCE_QPN_OFFSET);
    if (find_generation(channel, *qpn, generation))
        return true;
    forward(channel, segment);
    return false;
}

static void validate_sealed(struct udp_channel *channel, struct segment *segment)
{
    uint8_t plain[UDP_PACKET_MAX], *place = NULL;
    uint32_t qpn;
    bool punch_key = false;
    if (!read_sealed(channel, segment, &qpn, &segment->generation))
        return;
    enum udp_opened opened = open_segment(channel, segment, plain, &punch_key);
    if (opened == UDP_FORGED) {
        fabric_count(validate_stats_of(channel), rx_auth_failures, 1);
        return;
    }
    if (opened == UDP_REPLAYED) {
        fabric_count(validate_stats_of(channel), rx_replays, 1);
        return;
    }
    segment->data = plain;
    segment->bytes -= SEAL_BYTES;
    if (!udp_sealed_decode(plain, segment->bytes, &segment->packet) || segment->packet.dest_qpn != qpn ||
        segment->packet.opcode != ROCE_UC_WRITE_ONLY_IMM) {
        fabric_count(validate_stats_of(channel), bad_header, 1); /* the peer itself made it */
        return;
    }
    bool newest = opened == UDP_OPENED_NEWEST;
    if (punch_key) {
        if (newest && is_punch(channel, &segment->packet))
            note_source(channel);
        return;
    }
    enum rx_verdict verdict = check_segment(channel, segment, &place);
    /* What may have come before is no arrival, of which liveness and congestion control know, unless its
     * receive misses it. */
    if (opened == UDP_OPENED_PAST && place == NULL) {
        fabric_count(validate_stats_of(channel), rx_replays, 1);
        return;
    }
    take_segment(channel, segment, verdict, place, newest);
}

void udp_take_message(struct udp_channel *channel, const uint8_t *data, const struct udp_received *message)
{
    uint32_t index = message->first;
    channel->rx.proven = 0;
    for (uint32_t offset = 0; offset < message->bytes; offset += message->segment_bytes) {
        uint32_t left = message->bytes - offset;
        struct segment segment = {
            .data = data + offset,
            .bytes = left < message->segment_bytes ? left : message->segment_bytes,
            .index = index++,
        };
        if (channel->endpoint->keys != NULL)
            validate_sealed(channel, &segment);
        else
            validate_segment(channel, &segment);
    }
}
