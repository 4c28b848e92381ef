/* SPDX-License-Identifier: BSD-3-Clause */
#include "xp/xp_nic.h"

#include <assert.h>

#include <longhaul/xp.h>

#include "base/error.h"
#include "wire/xp_header.h"
#include "xp/xp_pacing.h"

/* ---- work ------------------------------------------------------------------------------------------ */

/* ---- lists -------------------------------------------------------------------------------------------- */

static void append(struct xp_nic *nic, struct xp_queue *queue, uint32_t index)
{
    nic->memory.works[index].next = XP_NONE;
    if (queue->first == XP_NONE)
        queue->first = index;
    else
        nic->memory.works[queue->last].next = index;
    queue->last = index;
}

static void free_first(struct xp_nic *nic, struct xp_queue *queue)
{
    uint32_t index = queue->first;
    queue->first = nic->memory.works[index].next;
    nic->memory.works[index].next = nic->free_work;
    nic->free_work = index;
}

void xp_ready(struct xp_nic *nic, uint32_t qpn)
{
    struct xp_host_qp *host = xp_host_of(nic, qpn);
    if (host->ready)
        return;
    host->ready = true;
    host->ready_next = XP_NONE;
    if (nic->ready.first == XP_NONE)
        nic->ready.first = qpn;
    else
        xp_host_of(nic, nic->ready.last)->ready_next = qpn;
    nic->ready.last = qpn;
}

uint32_t xp_take_response(struct xp_nic *nic)
{
    uint32_t index = nic->free_response;
    if (index != XP_NONE)
        nic->free_response = nic->memory.works[index].next;
    return index;
}

void xp_give_response(struct xp_nic *nic, uint32_t qpn)
{
    struct xp_host_qp *host = xp_host_of(nic, qpn);
    if (host->response == XP_NONE)
        return;
    nic->memory.works[host->response].next = nic->free_response;
    nic->free_response = host->response;
    host->response = XP_NONE;
}

/* ---- completions -------------------------------------------------------------------------------------- */

/* There is a place for each: what is posted and not polled is at most nic->limits.works. */
static void complete(struct xp_nic *nic, uint32_t qpn, const struct xp_work *work, enum lh_xp_status status,
                     uint32_t bytes)
{
    bool receive = work->verb == LH_XP_RECV;
    uint32_t place = (uint32_t)(((uint64_t)nic->completed_first + nic->completed) % nic->limits.works);
    assert(nic->completed < nic->limits.works);
    nic->completed++;
    nic->counters.timed_out += status == LH_XP_TIMED_OUT;
    nic->memory.completions[place] =
        (struct lh_xp_completion){.user = work->user,
                                  .qpn = qpn,
                                  .bytes = bytes,
                                  .length = receive ? work->length : work->bytes,
                                  .immediate = receive ? work->immediate : 0,
                                  .stride = work->stride,
                                  .verb = work->verb,
                                  .status = (uint8_t)status,
                                  .has_immediate = receive && work->requested};
}

uint32_t xp_nic_poll(struct xp_nic *nic, struct lh_xp_completion *completions, uint32_t count)
{
    uint32_t polled = 0;
    while (polled < count && nic->completed > 0) {
        completions[polled++] = nic->memory.completions[nic->completed_first];
        nic->completed_first = (nic->completed_first + 1) % nic->limits.works;
        nic->completed--;
        nic->used_works--;
    }
    return polled;
}

/* ---- the first of a queue ----------------------------------------------------------------------------- */

static void begin(struct xp_nic *nic, uint32_t timer, struct xp_work *work, lh_time now)
{
    if (!work) {
        wheel_cancel(&nic->wheel, timer);
        return;
    }
    work->due = now + work->timeout_ns;
    wheel_set(&nic->wheel, timer, work->due, now);
}

/* The first of the queue is now the queue pair's: its deadline counts. */
static void xp_begin_receive(struct xp_nic *nic, uint32_t qpn, lh_time now)
{
    begin(nic, xp_timer(qpn, XP_TIMER_RECEIVE), xp_first(nic, &xp_host_of(nic, qpn)->receives), now);
}

static void xp_begin_send(struct xp_nic *nic, uint32_t qpn, lh_time now)
{
    struct xp_work *work = xp_first(nic, &xp_host_of(nic, qpn)->sends);
    begin(nic, xp_timer(qpn, XP_TIMER_SEND), work, now);
    if (work)
        xp_ready(nic, qpn);
}

void xp_end_receive(struct xp_nic *nic, uint32_t qpn, enum lh_xp_status status, uint32_t bytes, lh_time now)
{
    struct xp_host_qp *host = xp_host_of(nic, qpn);
    complete(nic, qpn, xp_first(nic, &host->receives), status, bytes);
    free_first(nic, &host->receives);
    xp_transport_of(nic, qpn)->rx_receive++;
    xp_begin_receive(nic, qpn, now);
}

static bool takes_receive(const struct xp_work *work)
{
    return work->verb == LH_XP_SEND || work->verb == LH_XP_WRITE_IMM;
}

void xp_end_send(struct xp_nic *nic, uint32_t qpn, enum lh_xp_status status, lh_time now)
{
    struct xp_host_qp *host = xp_host_of(nic, qpn);
    struct xp_transport *transport = xp_transport_of(nic, qpn);
    const struct xp_work *work = xp_first(nic, &host->sends);
    transport->tx_receive = (uint16_t)(transport->tx_receive + takes_receive(work));
    transport->tx_seq = (transport->tx_seq + 1) & XP_SEQ_MASK;
    complete(nic, qpn, work, status, work->done);
    free_first(nic, &host->sends);
    xp_begin_send(nic, qpn, now);
}

/* ---- posting ------------------------------------------------------------------------------------------ */

/* -LH_EINVAL, with the number: no such queue pair is open. */
static int xp_check_open(const struct xp_nic *nic, uint32_t qpn)
{
    if (qpn == 0 || qpn > nic->limits.qps || !nic->memory.qps[qpn - 1].transport.open)
        return lh_fail(LH_EINVAL, "no queue pair %u is open", qpn);
    return 0;
}

static int check(const struct xp_nic *nic, uint32_t qpn, const struct lh_xp_request *request)
{
    int failed = xp_check_open(nic, qpn);
    if (failed)
        return failed;
    if (!nic->memory.qps[qpn - 1].transport.connected)
        return lh_fail(LH_ESTATE, "queue pair %u is not connected", qpn);
    if ((unsigned)request->verb > LH_XP_RECV)
        return lh_fail(LH_EINVAL, "verb %d (use SEND, WRITE, WRITE_IMM, READ or RECV)", (int)request->verb);
    if (request->bytes > LH_XP_MESSAGE_MAX)
        return lh_fail(LH_EINVAL, "a message of %u bytes (at most %u)", request->bytes, LH_XP_MESSAGE_MAX);
    if (request->timeout_ns == 0 || request->timeout_ns > LH_XP_TIMEOUT_MAX)
        return lh_fail(LH_EINVAL, "a deadline after %llu ns (above 0, at most 60 s)",
                       (unsigned long long)request->timeout_ns);
    if (nic->used_works == nic->limits.works)
        return lh_fail(LH_EAGAIN, "%u operations are posted, or completed and not polled: poll first",
                       nic->used_works);
    return 0;
}

static uint32_t take_work(struct xp_nic *nic, const struct lh_xp_request *request)
{
    uint32_t index = nic->free_work;
    struct xp_work *work = &nic->memory.works[index];
    nic->free_work = work->next;
    nic->used_works++;
    *work = (struct xp_work){.user = request->user,
                             .buffer = request->buffer,
                             .remote = request->remote,
                             .timeout_ns = request->timeout_ns,
                             .bytes = request->bytes,
                             .key = request->key,
                             .immediate = request->immediate,
                             .stride = request->stride,
                             .verb = (uint8_t)request->verb};
    return index;
}

int xp_nic_post(struct xp_nic *nic, uint32_t qpn, const struct lh_xp_request *request, lh_time now)
{
    int failed = check(nic, qpn, request);
    if (failed)
        return failed;
    struct xp_host_qp *host = xp_host_of(nic, qpn);
    bool receive = request->verb == LH_XP_RECV;
    struct xp_queue *queue = receive ? &host->receives : &host->sends;
    bool first = queue->first == XP_NONE;
    append(nic, queue, take_work(nic, request));
    if (first && receive)
        xp_begin_receive(nic, qpn, now);
    else if (first)
        xp_begin_send(nic, qpn, now);
    return 0;
}

/* ---- nic ------------------------------------------------------------------------------------------- */

/* Set-up, regions, time. */

_Static_assert(sizeof(struct xp_transport) == 20, "OptiNIC paper, section 2.4");
_Static_assert(sizeof(struct xp_qp) == 52, "OptiNIC paper, table 4");

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
