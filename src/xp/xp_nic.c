/* SPDX-License-Identifier: BSD-3-Clause */
#include "xp/work.h"

#include <assert.h>

#include "base/error.h"

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

void xp_begin_receive(struct xp_nic *nic, uint32_t qpn, lh_time now)
{
    begin(nic, xp_timer(qpn, XP_TIMER_RECEIVE), xp_first(nic, &xp_host_of(nic, qpn)->receives), now);
}

void xp_begin_send(struct xp_nic *nic, uint32_t qpn, lh_time now)
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

int xp_check_open(const struct xp_nic *nic, uint32_t qpn)
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
