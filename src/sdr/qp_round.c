/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/qp_round.h"

#include <assert.h>

#include "base/earlier.h"
#include "sdr/context.h"

#define OFFER_MORE 4u /* than the fabric took when it last refused some */

/* Mostly one is asked for after many arrivals, and the first of them is one. */
static void note_full(struct sdr_qp *qp, const struct fabric_arrival *arrivals, uint32_t count)
{
    if (atomic_load_explicit(&qp->full_arrived, memory_order_relaxed))
        return;
    for (uint32_t i = 0; i < count; i++)
        if (arrivals[i].bytes == qp->shape.mtu_bytes) {
            atomic_store_explicit(&qp->full_arrived, true, memory_order_relaxed);
            return;
        }
}

static bool receive(struct sdr_qp *qp, uint32_t channel, lh_time now)
{
    struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
    int count = qp->endpoint->fabric->ops->poll(qp->endpoint, channel, arrivals, FABRIC_BATCH_MAX);
    if (count < 0) {
        qp_fail(qp, -LH_EDEVICE);
        return false;
    }
    if (count == FABRIC_POLL_AGAIN)
        return true;
    /* A poll may leave some behind, unless it finds nothing. */
    if (count == 0)
        atomic_store_explicit(&qp->channels[channel].drained_ns, now, memory_order_release);
    if (count > 0)
        note_full(qp, arrivals, (uint32_t)count);
    if (count > 0)
        message_table_on_arrivals(&qp->table, arrivals, (uint32_t)count, &qp->stats);
    return count > 0;
}

/* How many of these packets the pace lets out now. */
static uint32_t pace(struct sdr_qp *qp, const struct fabric_write *writes, uint32_t count, lh_time now)
{
    if (qp->pacer.rate_bps == 0)
        return count;
    pthread_mutex_lock(&qp->pacer_lock);
    uint64_t allowance = pacer_allowance(&qp->pacer, now);
    uint32_t passed = 0;
    uint64_t bytes = 0;
    while (passed < count && bytes + writes[passed].bytes <= allowance)
        bytes += writes[passed++].bytes;
    pacer_on_sent(&qp->pacer, now, bytes);
    pthread_mutex_unlock(&qp->pacer_lock);
    return passed;
}

/* When the pace lets the next packet out. */
static lh_time pace_ready(struct sdr_qp *qp, lh_time now)
{
    pthread_mutex_lock(&qp->pacer_lock);
    lh_time ready = pacer_ready(&qp->pacer, now, qp->shape.mtu_bytes);
    pthread_mutex_unlock(&qp->pacer_lock);
    return ready;
}

static void refund(struct sdr_qp *qp, uint64_t bytes)
{
    if (qp->pacer.rate_bps == 0 || bytes == 0)
        return;
    pthread_mutex_lock(&qp->pacer_lock);
    pacer_on_refused(&qp->pacer, bytes);
    pthread_mutex_unlock(&qp->pacer_lock);
}

static uint64_t bytes_of(const struct fabric_write *writes, uint32_t count)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += writes[i].bytes;
    return bytes;
}

/* Who reads that they are gone reads when, too. */
static void note_left(struct sdr_qp *qp, uint64_t bytes, lh_time now)
{
    if (bytes == 0)
        return;
    lh_time last_ns = atomic_load_explicit(&qp->sends_left_ns, memory_order_relaxed);
    while (now > last_ns &&
           !atomic_compare_exchange_weak_explicit(&qp->sends_left_ns, &last_ns, now, memory_order_relaxed,
                                                  memory_order_relaxed))
        ; /* until nobody is in between: workers are few */
    atomic_fetch_sub_explicit(&qp->queued_bytes, bytes, memory_order_release);
}

/* Offers the fabric up to `room` of the next packets; returns how many it took. *refused: not all. */
static uint32_t offer(struct sdr_qp *qp, uint32_t channel, uint32_t room, lh_time now, lh_time *next,
                      bool *refused)
{
    struct send_channel *sends = &qp->channels[channel].sends;
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    struct fabric_write writes[FABRIC_BATCH_MAX];
    assert(room > 0 && room <= FABRIC_BATCH_MAX);
    uint32_t ready = send_channel_peek(sends, &qp->send_shape, channel, writes, room);
    uint32_t count = pace(qp, writes, ready, now);
    int taken = count ? ops->post_writes(qp->endpoint, channel, writes, count) : 0;
    if (taken < 0) {
        qp_fail(qp, -LH_EDEVICE);
        taken = 0;
    }
    refund(qp, bytes_of(writes + taken, count - (uint32_t)taken));
    /* When the fabric took less than the pace allows, the fabric decides when to go on. */
    if ((uint32_t)taken == count && count < ready)
        lh_keep_earlier(next, pace_ready(qp, now));
    uint64_t bytes = send_channel_take(sends, &qp->send_shape, channel, (uint32_t)taken);
    note_left(qp, bytes, now);
    fabric_count(&qp->stats, tx_packets, taken);
    fabric_count(&qp->stats, tx_bytes, bytes);
    *refused = (uint32_t)taken < count;
    if (*refused && !ops->pump)
        lh_keep_earlier(next, now + QP_BLOCKED_RETRY_NS);
    return (uint32_t)taken;
}

/* A batch at most. A fabric that took few the last time will hardly take many now, and the packets that it
 * refuses were made for nothing: it is offered a few first, and the rest of the batch when it takes them. */
static bool inject(struct sdr_qp *qp, uint32_t channel, lh_time now, lh_time *next)
{
    struct qp_channel *own = &qp->channels[channel];
    if (send_channel_empty(&own->sends))
        return false;
    uint64_t dropped = send_channel_drop_aborted(&own->sends, &qp->send_shape, channel);
    note_left(qp, dropped, now);
    bool refused = false;
    uint32_t first = FABRIC_BATCH_MAX - own->held_back;
    uint32_t taken = offer(qp, channel, first, now, next, &refused);
    if (taken == first && own->held_back > 0)
        taken += offer(qp, channel, own->held_back, now, next, &refused);
    uint32_t likely = taken + OFFER_MORE;
    own->held_back = refused && likely < FABRIC_BATCH_MAX ? FABRIC_BATCH_MAX - likely : 0;
    return taken > 0 || dropped > 0;
}

/* Sends whose payload the fabric reads no more are complete. */
static bool release(struct sdr_qp *qp, uint32_t channel)
{
    struct send_channel *sends = &qp->channels[channel].sends;
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    uint64_t released = ops->released != NULL ? ops->released(qp->endpoint, channel) : sends->taken;
    return send_channel_release(sends, released);
}

/* Nobody takes what a QP that has ended still has to send; without this its sends would never complete. */
static bool give_up(struct sdr_qp *qp, uint32_t channel)
{
    struct send_channel *sends = &qp->channels[channel].sends;
    if (send_channel_empty(sends))
        return false;
    uint64_t dropped = send_channel_abort_all(sends, &qp->send_shape, channel);
    atomic_fetch_sub_explicit(&qp->queued_bytes, dropped, memory_order_relaxed);
    return true;
}

/* The driver reads bitmaps, and the control worker that runs it may be asleep. */
static void kick_driver(struct sdr_qp *qp, uint32_t channel)
{
    uint32_t workers = qp->context->worker_count;
    if (workers > 1 && channel % workers != 0 && atomic_load_explicit(&qp->driven, memory_order_relaxed))
        sdr_qp_driver_kick(qp);
}

bool qp_channel_round(struct sdr_qp *qp, uint32_t channel, lh_time now, lh_time *next)
{
    if (!atomic_load_explicit(&qp->connected, memory_order_acquire))
        return false;
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    bool moved = false;
    gate_enter_round(&qp->channels[channel].gate);
    if (!qp_device_gone(qp))
        moved = receive(qp, channel, now);
    if (moved)
        kick_driver(qp, channel);
    if (atomic_load(&qp->error))
        moved |= give_up(qp, channel);
    else if (atomic_load_explicit(&qp->proven, memory_order_relaxed))
        moved |= inject(qp, channel, now, next);
    moved |= release(qp, channel);
    if (ops->pump && !qp_device_gone(qp))
        lh_keep_earlier(next, ops->pump(qp->endpoint, channel, now));
    gate_leave(&qp->channels[channel].gate);
    return moved;
}
