/*
 * transmit.c - packets that leave: each queue pair with something to send has a turn of one packet.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "xp/nic.h"
#include "xp/receive.h"
#include "xp/work.h"

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
