/*
 * nic.c - set-up, regions, time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "xp/nic.h"

#include <assert.h>

#include "base/error.h"
#include "xp/work.h"

#define REGION_SHIFT 16

static void chain(struct xp_work *works, uint32_t from, uint32_t count, uint32_t *head)
{
    *head = count ? from : XP_NONE;
    for (uint32_t i = 0; i < count; i++)
        works[from + i].next = i + 1 < count ? from + i + 1 : XP_NONE;
}

void xp_nic_init(struct xp_nic *nic, const struct xp_limits *limits, const struct xp_memory *memory,
                 const struct xp_rate_config *rate, uint32_t mtu_bytes, lh_time tick_ns, lh_time now)
{
    assert(limits->qps > 0 && limits->qps <= ROCE_QPN_MASK && limits->works > 0);
    assert(limits->regions < 1u << REGION_SHIFT && mtu_bytes > 0 && mtu_bytes <= ROCE_MTU_MAX);
    *nic = (struct xp_nic){.limits = *limits,
                           .memory = *memory,
                           .rate = *rate,
                           .mtu_bytes = mtu_bytes,
                           .ready = {XP_NONE, XP_NONE}};
    chain(memory->works, 0, limits->works, &nic->free_work);
    chain(memory->works, limits->works, limits->responses, &nic->free_response);
    for (uint32_t i = 0; i < limits->qps; i++)
        memory->host[i].ready_next = i + 1 < limits->qps ? i + 2 : XP_NONE; /* the free ones */
    nic->free_qp = 1;
    wheel_init(&nic->wheel, tick_ns, now, limits->qps * XP_TIMERS, memory->timers, memory->due);
}

/* ---- queue pairs -------------------------------------------------------------------------------------- */

int xp_nic_open(struct xp_nic *nic, uint32_t *qpn)
{
    uint32_t opened = nic->free_qp;
    if (opened == XP_NONE)
        return lh_fail(LH_EAGAIN, "all %u queue pairs are open", nic->limits.qps);
    struct xp_host_qp *host = xp_host_of(nic, opened);
    nic->free_qp = host->ready_next;
    *host = (struct xp_host_qp){.sends = {XP_NONE, XP_NONE},
                                .receives = {XP_NONE, XP_NONE},
                                .response = XP_NONE,
                                .peer = XP_NONE,
                                .ready_next = XP_NONE};
    nic->memory.qps[opened - 1] = (struct xp_qp){.transport = {.open = 1}};
    *qpn = opened;
    return 0;
}

int xp_nic_connect(struct xp_nic *nic, uint32_t qpn, const struct xp_peer *peer, lh_time now)
{
    int failed = xp_check_open(nic, qpn);
    if (failed)
        return failed;
    struct xp_transport *transport = xp_transport_of(nic, qpn);
    if (transport->connected)
        return lh_fail(LH_ESTATE, "queue pair %u is connected, to %u", qpn, transport->peer_qpn);
    transport->connected = 1;
    transport->peer_qpn = peer->qpn & ROCE_QPN_MASK;
    transport->tx_seq = peer->tx_seq & XP_SEQ_MASK;
    transport->rx_seq = peer->rx_seq & XP_SEQ_MASK;
    xp_host_of(nic, qpn)->peer = peer->peer;
    xp_rate_start(&nic->memory.qps[qpn - 1].rate, &nic->rate, now);
    return 0;
}

/* Out of the list of those with something to send: its links are needed for another one. */
static void leave_ready(struct xp_nic *nic, uint32_t qpn)
{
    uint32_t before = XP_NONE, at = nic->ready.first;
    if (!xp_host_of(nic, qpn)->ready)
        return;
    for (; at != qpn; at = xp_host_of(nic, at)->ready_next)
        before = at;
    uint32_t next = xp_host_of(nic, qpn)->ready_next;
    if (before == XP_NONE)
        nic->ready.first = next;
    else
        xp_host_of(nic, before)->ready_next = next;
    if (nic->ready.last == qpn)
        nic->ready.last = before;
}

int xp_nic_close(struct xp_nic *nic, uint32_t qpn)
{
    int failed = xp_check_open(nic, qpn);
    if (failed)
        return failed;
    struct xp_host_qp *host = xp_host_of(nic, qpn);
    struct xp_transport *transport = xp_transport_of(nic, qpn);
    bool placed = transport->active && transport->receives;
    while (host->receives.first != XP_NONE) {
        xp_end_receive(nic, qpn, LH_XP_FLUSHED, placed ? transport->rx_bytes : 0, 0);
        placed = false;
    }
    while (host->sends.first != XP_NONE)
        xp_end_send(nic, qpn, LH_XP_FLUSHED, 0);
    xp_give_response(nic, qpn);
    leave_ready(nic, qpn);
    wheel_cancel(&nic->wheel, xp_timer(qpn, XP_TIMER_PACE));
    transport->open = transport->connected = 0;
    *host = (struct xp_host_qp){.ready_next = nic->free_qp};
    nic->free_qp = qpn;
    return 0;
}

/* ---- regions ------------------------------------------------------------------------------------------ */

int xp_nic_expose(struct xp_nic *nic, void *base, uint64_t bytes, uint32_t access, uint32_t random,
                  uint32_t *key)
{
    for (uint32_t i = 0; i < nic->limits.regions; i++) {
        struct xp_region *region = &nic->memory.regions[i];
        if (region->key != 0)
            continue;
        *region = (struct xp_region){
            .base = base, .bytes = bytes, .key = random << REGION_SHIFT | (i + 1), .access = access};
        *key = region->key;
        return 0;
    }
    return lh_fail(LH_EAGAIN, "all %u regions are in use", nic->limits.regions);
}

int xp_nic_withdraw(struct xp_nic *nic, uint32_t key, struct xp_region *was)
{
    uint32_t place = key & ((1u << REGION_SHIFT) - 1);
    if (place == 0 || place > nic->limits.regions || nic->memory.regions[place - 1].key != key)
        return lh_fail(LH_EKEY, "no region has key 0x%x", key);
    *was = nic->memory.regions[place - 1];
    nic->memory.regions[place - 1].key = 0;
    return 0;
}

/* ---- time --------------------------------------------------------------------------------------------- */

/* A message that is active ends with its receive; else no packet of it has come, or none will be taken. */
static void receive_timed_out(struct xp_nic *nic, uint32_t qpn, lh_time now)
{
    struct xp_transport *transport = xp_transport_of(nic, qpn);
    bool placed = transport->active && transport->receives;
    xp_end_receive(nic, qpn, LH_XP_TIMED_OUT, placed ? transport->rx_bytes : 0, now);
    if (!placed)
        return;
    transport->active = 0;
    transport->rx_seq = (transport->rx_seq + 1) & XP_SEQ_MASK;
}

void xp_nic_expire(struct xp_nic *nic, lh_time now)
{
    for (uint32_t timer; (timer = wheel_expired(&nic->wheel, now)) != WHEEL_NONE;) {
        uint32_t qpn = timer / XP_TIMERS + 1;
        switch (timer % XP_TIMERS) {
        case XP_TIMER_RECEIVE:
            receive_timed_out(nic, qpn, now);
            break;
        case XP_TIMER_SEND:
            xp_end_send(nic, qpn, LH_XP_TIMED_OUT, now);
            break;
        default:
            xp_ready(nic, qpn);
        }
    }
}

lh_time xp_nic_next(const struct xp_nic *nic)
{
    return wheel_next(&nic->wheel);
}
