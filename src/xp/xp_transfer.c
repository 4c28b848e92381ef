/*
 * xp_transfer.c - memory that peers may reach by key.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "xp/xp_nic.h"

/* ---- receive --------------------------------------------------------------------------------------- */

/*
 * Packets that come: which message they are of, whether that is the active one, and where they
 * go.
 *
 * A packet is judged whole before it changes anything: one that cannot be placed ends no message.
 */

#define NOTIFY_SHIFT                                                                                       \
    14 /* units of 16.4 us: at least two of them between notifications, as NICs do (50 us) */
#define NOTIFY_UNITS 3u
#define REGION_MASK  0xFFFFu

/* How far ahead of the expected message, in 24 bits; negative: before it. */
static int32_t ahead(uint32_t seq, uint32_t expected)
{
    return (int32_t)((seq - expected) << 8) >> 8;
}

static bool takes_receive(const struct xp_packet *packet)
{
    return packet->opcode == XP_SEND || packet->opcode == XP_WRITE_IMM;
}

static const struct xp_region *find_region(const struct xp_nic *nic, uint32_t key, uint32_t access)
{
    uint32_t place = key & REGION_MASK;
    if (place == 0 || place > nic->limits.regions)
        return NULL;
    const struct xp_region *region = &nic->memory.regions[place - 1];
    return region->key == key && region->access & access ? region : NULL;
}

/* *found: whether a region of this key, with that access, has these bytes. Where they are; NULL where none
 * are kept (simulation). */
static uint8_t *xp_region_at(const struct xp_nic *nic, uint32_t key, uint32_t access, uint64_t address,
                             uint64_t bytes, bool *found)
{
    const struct xp_region *region = find_region(nic, key, access);
    *found = region && address <= region->bytes && bytes <= region->bytes - address;
    return *found && region->base ? region->base + address : NULL;
}

/* ---- one packet --------------------------------------------------------------------------------------- */

struct arrival {
    uint32_t qpn;
    lh_time now;
    const struct xp_packet *packet;
    struct xp_transport *transport;
    int32_t ahead;   /* messages that it skips, and the active one */
    int32_t skipped; /* receives that it skips, and that of the active message */
    bool continues;  /* it is of the active message */
    struct xp_work *receive;
    uint8_t *place;
};

/* The receive that a message takes: the n-th that was posted, whatever was lost. */
static bool find_receive(struct xp_nic *nic, struct arrival *arrival)
{
    const struct xp_transport *transport = arrival->transport;
    bool own = transport->active && transport->receives;
    arrival->skipped = (int16_t)(uint16_t)(arrival->packet->receive - transport->rx_receive);
    if (arrival->skipped < 0) {
        nic->counters.late++;
        return false;
    }
    /* Each message takes one at the most. */
    if (arrival->skipped > arrival->ahead || (own && (arrival->skipped == 0) != (arrival->ahead == 0))) {
        nic->counters.bad_seq++;
        return false;
    }
    uint32_t index = xp_host_of(nic, arrival->qpn)->receives.first;
    for (int32_t i = 0; i < arrival->skipped && index != XP_NONE; i++)
        index = nic->memory.works[index].next;
    arrival->receive = index == XP_NONE ? NULL : &nic->memory.works[index];
    if (!arrival->receive)
        nic->counters.no_receive++;
    return arrival->receive != NULL;
}

static bool find_place(struct xp_nic *nic, struct arrival *arrival)
{
    const struct xp_packet *packet = arrival->packet;
    bool found;
    bool same_length =
        !arrival->continues || !arrival->receive || packet->length == arrival->receive->length;
    if (packet->opcode == XP_SEND) {
        const struct xp_work *receive = arrival->receive;
        found =
            packet->offset <= receive->bytes && packet->payload_bytes <= receive->bytes - packet->offset;
        arrival->place = found && receive->buffer ? receive->buffer + packet->offset : NULL;
    } else if (packet->opcode == XP_READ_REQUEST) {
        xp_region_at(nic, packet->key, LH_XP_REMOTE_READ, packet->offset, packet->length, &found);
    } else {
        arrival->place = xp_region_at(nic, packet->key, LH_XP_REMOTE_WRITE, packet->offset,
                                      packet->payload_bytes, &found);
    }
    found &= same_length;
    nic->counters.bad_range += !found;
    return found;
}

/* The active message continues, or may another begin? */
static bool fits(struct xp_nic *nic, struct arrival *arrival)
{
    const struct xp_transport *transport = arrival->transport;
    const struct xp_packet *packet = arrival->packet;
    arrival->ahead = ahead(packet->wqe_seq, transport->rx_seq);
    if (arrival->ahead < 0) {
        nic->counters.late++;
        return false;
    }
    arrival->continues = arrival->ahead == 0 && transport->active;
    if (arrival->ahead > (int32_t)XP_SEQ_WINDOW ||
        (arrival->continues &&
         (takes_receive(packet) != transport->receives || packet->opcode == XP_READ_REQUEST))) {
        nic->counters.bad_seq++;
        return false;
    }
    return (!takes_receive(packet) || find_receive(nic, arrival)) && find_place(nic, arrival);
}

/* ---- messages ----------------------------------------------------------------------------------------- */

static void end_message(struct xp_nic *nic, const struct arrival *arrival, enum lh_xp_status status)
{
    struct xp_transport *transport = arrival->transport;
    if (transport->receives)
        xp_end_receive(nic, arrival->qpn, status, transport->rx_bytes, arrival->now);
    transport->active = 0;
    transport->rx_seq = (transport->rx_seq + 1) & XP_SEQ_MASK;
}

/* What is before it ends: the active message, and receives whose messages were lost whole. */
static void begin_message(struct xp_nic *nic, const struct arrival *arrival)
{
    struct xp_transport *transport = arrival->transport;
    const struct xp_packet *packet = arrival->packet;
    if (transport->active) {
        nic->counters.preempted++;
        end_message(nic, arrival, LH_XP_PREEMPTED);
    }
    while (takes_receive(packet) && transport->rx_receive != packet->receive)
        xp_end_receive(nic, arrival->qpn, LH_XP_PREEMPTED, 0, arrival->now);
    transport->rx_seq = packet->wqe_seq & XP_SEQ_MASK;
    transport->active = 1;
    transport->receives = takes_receive(packet);
    transport->rx_bytes = 0;
    if (!arrival->receive)
        return;
    arrival->receive->length = packet->length;
    arrival->receive->stride = packet->stride;
    arrival->receive->immediate = packet->immediate;
    arrival->receive->requested = packet->opcode == XP_WRITE_IMM;
}

/* Copies count, too, so it may reach the length with bytes missing; never more. */
static void count_bytes(uint32_t *bytes, uint32_t more, uint32_t maximum)
{
    *bytes = more < maximum - *bytes ? *bytes + more : maximum;
}

static void take_data(struct xp_nic *nic, const struct arrival *arrival)
{
    const struct xp_packet *packet = arrival->packet;
    struct xp_transport *transport = arrival->transport;
    if (arrival->ahead > 0 || !transport->active)
        begin_message(nic, arrival);
    if (arrival->place && packet->payload_bytes)
        memcpy(arrival->place, packet->payload, packet->payload_bytes);
    uint32_t maximum = packet->length;
    if (packet->opcode == XP_SEND && maximum > arrival->receive->bytes)
        maximum = arrival->receive->bytes;
    if (transport->rx_bytes < maximum)
        count_bytes(&transport->rx_bytes, packet->payload_bytes, maximum);
    if (packet->last)
        end_message(nic, arrival, LH_XP_COMPLETE);
}

/* A message of one packet, answered until its deadline; the one before is over, for the peer has one at a
 * time. */
static void take_request(struct xp_nic *nic, const struct arrival *arrival)
{
    const struct xp_packet *packet = arrival->packet;
    begin_message(nic, arrival);
    arrival->transport->active = 0;
    arrival->transport->rx_seq = (arrival->transport->rx_seq + 1) & XP_SEQ_MASK;
    xp_give_response(nic, arrival->qpn);
    uint32_t index = xp_take_response(nic);
    if (index == XP_NONE) {
        nic->counters.reads_refused++;
        return;
    }
    lh_time left = packet->deadline_us * LH_NS_PER_US;
    nic->memory.works[index] =
        (struct xp_work){.remote = packet->offset,
                         .key = packet->key,
                         .bytes = packet->length,
                         .seq = packet->wqe_seq,
                         .due = arrival->now + (left < LH_XP_TIMEOUT_MAX ? left : LH_XP_TIMEOUT_MAX)};
    xp_host_of(nic, arrival->qpn)->response = index;
    xp_ready(nic, arrival->qpn);
}

/* Of the READ that is this side's active send. */
static void take_response(struct xp_nic *nic, const struct arrival *arrival)
{
    const struct xp_packet *packet = arrival->packet;
    struct xp_work *work = xp_first(nic, &xp_host_of(nic, arrival->qpn)->sends);
    if (!work || work->verb != LH_XP_READ || !work->requested ||
        packet->wqe_seq != arrival->transport->tx_seq) {
        nic->counters.late++;
        return;
    }
    if (packet->length != work->bytes || packet->offset > work->bytes ||
        packet->payload_bytes > work->bytes - packet->offset) {
        nic->counters.bad_range++;
        return;
    }
    if (work->buffer && packet->payload_bytes)
        memcpy(work->buffer + packet->offset, packet->payload, packet->payload_bytes);
    count_bytes(&work->done, packet->payload_bytes, work->bytes);
    if (packet->last)
        xp_end_send(nic, arrival->qpn, LH_XP_COMPLETE, arrival->now);
}

/* ---- all of them -------------------------------------------------------------------------------------- */

static void take_mark(struct xp_nic *nic, const struct arrival *arrival)
{
    uint8_t units = (uint8_t)(arrival->now >> NOTIFY_SHIFT);
    nic->counters.marked++;
    if ((uint8_t)(units - arrival->transport->notified) < NOTIFY_UNITS)
        return;
    arrival->transport->notify = 1;
    arrival->transport->notified = units;
    xp_ready(nic, arrival->qpn);
}

void xp_nic_arrive(struct xp_nic *nic, uint32_t peer, const struct xp_packet *packet, bool marked,
                   lh_time now)
{
    uint32_t qpn = packet->dest_qpn;
    nic->counters.rx_packets++;
    if (qpn == 0 || qpn > nic->limits.qps || !xp_transport_of(nic, qpn)->connected ||
        xp_host_of(nic, qpn)->peer != peer) {
        nic->counters.bad_qpn++;
        return;
    }
    struct arrival arrival = {
        .qpn = qpn, .now = now, .packet = packet, .transport = xp_transport_of(nic, qpn)};
    if (marked)
        take_mark(nic, &arrival);
    switch (packet->opcode) {
    case XP_NOTIFICATION:
        nic->counters.notifications++;
        xp_rate_on_notification(&nic->memory.qps[qpn - 1].rate, &nic->rate, now);
        break;
    case XP_READ_RESPONSE:
        take_response(nic, &arrival);
        break;
    case XP_READ_REQUEST:
        if (fits(nic, &arrival))
            take_request(nic, &arrival);
        break;
    default:
        if (fits(nic, &arrival))
            take_data(nic, &arrival);
    }
}

/* ---- transmit -------------------------------------------------------------------------------------- */

/* Packets that leave: each queue pair with something to send has a turn of one packet. */

/* UDP and IPv4. */
#define BELOW_BYTES 28u

static const enum xp_opcode opcodes[] = {[LH_XP_SEND] = XP_SEND,
                                         [LH_XP_WRITE] = XP_WRITE,
                                         [LH_XP_WRITE_IMM] = XP_WRITE_IMM,
                                         [LH_XP_READ] = XP_READ_REQUEST};

/* Bytes of the next fragment of a message, and whether it is the last. */
static uint32_t next_fragment(const struct xp_nic *nic, const struct xp_work *work, bool *last)
{
    uint32_t left = work->bytes - work->done;
    *last = left <= nic->mtu_bytes;
    return *last ? left : nic->mtu_bytes;
}

static void fill_notification(struct xp_nic *nic, uint32_t qpn, struct xp_packet *packet)
{
    packet->opcode = XP_NOTIFICATION;
    xp_transport_of(nic, qpn)->notify = 0;
}

/* False: the requester's deadline has passed, or the region is gone. */
static bool fill_response(struct xp_nic *nic, uint32_t qpn, lh_time now, struct xp_packet *packet)
{
    struct xp_work *work = &nic->memory.works[xp_host_of(nic, qpn)->response];
    bool found = false;
    packet->payload_bytes = next_fragment(nic, work, &packet->last);
    packet->payload = xp_region_at(nic, work->key, LH_XP_REMOTE_READ, work->remote + work->done,
                                   packet->payload_bytes, &found);
    if (!found || now > work->due) {
        xp_give_response(nic, qpn);
        return false;
    }
    packet->opcode = XP_READ_RESPONSE;
    packet->wqe_seq = work->seq;
    packet->offset = work->done;
    packet->length = work->bytes;
    work->done += packet->payload_bytes;
    if (packet->last)
        xp_give_response(nic, qpn);
    return true;
}

static void fill_request(struct xp_work *work, lh_time now, struct xp_packet *packet)
{
    packet->offset = work->remote;
    packet->key = work->key;
    packet->deadline_us = (uint32_t)((work->due - now + LH_NS_PER_US - 1) / LH_NS_PER_US);
    work->requested = true;
}

static void fill_data(struct xp_nic *nic, uint32_t qpn, struct xp_work *work, lh_time now,
                      struct xp_packet *packet)
{
    bool one_sided = work->verb != LH_XP_SEND;
    packet->payload_bytes = next_fragment(nic, work, &packet->last);
    packet->payload = work->buffer ? work->buffer + work->done : NULL;
    packet->offset = one_sided ? work->remote + work->done : work->done;
    packet->key = one_sided ? work->key : 0;
    packet->stride = work->stride;
    if (work->verb == LH_XP_WRITE_IMM)
        packet->immediate = work->immediate;
    if (work->verb != LH_XP_WRITE)
        packet->receive = xp_transport_of(nic, qpn)->tx_receive;
    work->done += packet->payload_bytes;
    if (packet->last)
        xp_end_send(nic, qpn, LH_XP_COMPLETE, now);
}

/* False: the first of the queue has nothing to send. A READ has sent its request and waits. */
static bool fill_send(struct xp_nic *nic, uint32_t qpn, lh_time now, struct xp_packet *packet)
{
    struct xp_work *work = xp_first(nic, &xp_host_of(nic, qpn)->sends);
    if (!work || work->requested || now > work->due)
        return false;
    packet->opcode = opcodes[work->verb];
    packet->wqe_seq = xp_transport_of(nic, qpn)->tx_seq;
    packet->length = work->bytes;
    if (work->verb == LH_XP_READ)
        fill_request(work, now, packet);
    else
        fill_data(nic, qpn, work, now, packet);
    return true;
}

static bool fill(struct xp_nic *nic, uint32_t qpn, lh_time now, struct xp_packet *packet)
{
    *packet = (struct xp_packet){.dest_qpn = xp_transport_of(nic, qpn)->peer_qpn};
    if (xp_transport_of(nic, qpn)->notify) {
        fill_notification(nic, qpn, packet);
        return true;
    }
    if (xp_host_of(nic, qpn)->response != XP_NONE && fill_response(nic, qpn, now, packet))
        return true;
    return fill_send(nic, qpn, now, packet);
}

static uint32_t pop_ready(struct xp_nic *nic)
{
    uint32_t qpn = nic->ready.first;
    struct xp_host_qp *host = xp_host_of(nic, qpn);
    nic->ready.first = host->ready_next;
    host->ready = false;
    return qpn;
}

bool xp_nic_transmit(struct xp_nic *nic, lh_time now, struct xp_departure *departure)
{
    while (nic->ready.first != XP_NONE) {
        uint32_t qpn = pop_ready(nic);
        struct xp_rate *rate = &nic->memory.qps[qpn - 1].rate;
        lh_time next;
        if (!xp_rate_may_send(rate, &nic->rate, now, &next)) {
            wheel_set(&nic->wheel, xp_timer(qpn, XP_TIMER_PACE), next, now);
            continue;
        }
        departure->peer = xp_host_of(nic, qpn)->peer;
        if (!fill(nic, qpn, now, &departure->packet))
            continue;
        xp_rate_on_sent(rate, &nic->rate, departure->packet.payload_bytes + XP_OVERHEAD + BELOW_BYTES, now);
        nic->counters.tx_packets++;
        xp_ready(nic, qpn);
        return true;
    }
    return false;
}
