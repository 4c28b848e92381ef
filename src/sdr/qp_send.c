/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/qp_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/units.h>

#include "base/error.h"
#include "base/min_max.h"
#include "sdr/qp.h"
#include "sdr/sdr_state.h"
#include "sdr/sdr_driver.h"

/* ---- sdk warning ----------------------------------------------------------------------------------- */

#define LINE_MAX_BYTES 512u

void sdk_warn(struct sdr_context *context, enum sdk_warning kind, const char *format, ...)
{
    if (atomic_fetch_or(&context->warned, (uint32_t)kind) & (uint32_t)kind)
        return;
    char line[LINE_MAX_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    /* In one piece: several processes may share a log. */
    fprintf(stderr, "longhaul: %s\n", line);
}

/* ---- qp send --------------------------------------------------------------------------------------- */

/* A part of a message to post. */
struct part {
    uint64_t address;
    uint64_t offset_chunks;
    uint32_t length;
    uint32_t lkey;
};

/* Takes the next clear-to-send for a new message. Under the QP's lock. */
static int start_locked(struct sdr_qp *qp, enum sdr_wr_opcode opcode, uint32_t immediate, bool streaming,
                        struct sdr_send_handle **handle)
{
    const struct control_cts *cts = cts_queue_peek(&qp->cts);
    if (!cts)
        return lh_fail(LH_EAGAIN, "the matching receive is not posted yet");
    struct sdr_send_handle *send;
    int error = qp_hold_send(qp, &send);
    if (error)
        return error;
    qp->sends.unused = send->next;
    qp->sends.in_use++;
    send->message = (struct send_message){
        .slot = cts->slot,
        .rkey = cts->rkey,
        .base = cts->base,
        .length_bytes = cts->length_bytes,
        .generation = cts->generation,
        .user_immediate = immediate,
        .has_immediate = opcode == SDR_WR_WRITE_WITH_IMM,
        .in_use = true,
        .streaming = streaming,
    };
    message_extent_open(&send->message.extent, cts->length_bytes);
    cts_queue_pop(&qp->cts);
    qp_note_cts(qp);
    *handle = send;
    return 0;
}

static int check_part(struct sdr_qp *qp, const struct part *part, uint32_t capacity)
{
    uint64_t chunk_bytes = (uint64_t)qp->shape.mtu_bytes * qp->shape.chunk_packets;
    if (part->offset_chunks > capacity / chunk_bytes ||
        part->length > capacity - part->offset_chunks * chunk_bytes)
        return lh_fail(LH_ERANGE, "%u bytes at chunk %llu: exceed the receive of %u bytes", part->length,
                       (unsigned long long)part->offset_chunks, capacity);
    if (!memory_covers(qp->context, part->lkey, part->address, part->length))
        return lh_fail(LH_EKEY, "lkey %u does not cover %u bytes at 0x%llx: register them with sdr_mr_reg",
                       part->lkey, part->length, (unsigned long long)part->address);
    return 0;
}

/* A receiver takes one packet shorter than the MTU, the last one. */
static int check_end(struct sdr_qp *qp, struct send_message *message, const struct part *part)
{
    uint32_t mtu = qp->shape.mtu_bytes;
    uint32_t first = (uint32_t)part->offset_chunks * qp->shape.chunk_packets;
    uint32_t full = part->length / mtu;
    bool fits = full == 0 || message_extent_full(&message->extent, mtu, first + full - 1, 1) != 0;
    if (fits && part->length % mtu != 0)
        fits = message_extent_short(&message->extent, mtu, first + full, part->length % mtu);
    if (fits)
        return 0;
    return lh_fail(LH_EINVAL,
                   "%u bytes at chunk %u: not a multiple of the MTU, %u (only a message's end may differ)",
                   part->length, (uint32_t)part->offset_chunks, mtu);
}

static void note_fragments(struct send_message *message, uint32_t fragments, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count && i < fragments; i++)
        message->fragments |= 1u << ((first + i) % fragments);
}

/* Nothing here waits for the receiver: what exceeds its buffers may be dropped there, and stays lost. A pace
 * was set for that. */
static void note_queued(struct sdr_qp *qp, uint64_t queued)
{
    uint64_t buffer = qp->peer.receive_buffer_bytes;
    if (queued <= buffer || buffer == 0 || !qp->peer.traits.drops_unread || rate_control_is_on(&qp->rate) ||
        qp->rate.pacer.rate_bps != 0 || !sdk_warning_due(qp->context, SDK_WARNING_SENT))
        return;
    char bytes[LH_FORMAT_MAX], room[LH_FORMAT_MAX];
    sdk_warn(qp->context, SDK_WARNING_SENT,
             "sdr_send_post: %s queued exceed the peer's receive buffers (%s): packets may be lost, and "
             "the SDK does not retransmit (keep less in flight, or set sdr_qp_attr.rate_limit; if "
             "net.core.rmem_max at the peer is below %llu, raise it: sysctl -w net.core.rmem_max=%llu)",
             lh_format_size(queued, bytes, sizeof bytes), lh_format_size(buffer, room, sizeof room),
             (unsigned long long)FABRIC_RECEIVE_BUFFER_DEFAULT,
             (unsigned long long)FABRIC_RECEIVE_BUFFER_DEFAULT);
}

static void post_range(struct sdr_qp *qp, struct send_range *range)
{
    range->before = qp->payload_posted;
    qp->payload_posted += range->bytes;
    uint64_t before = atomic_fetch_add_explicit(&qp->queued_bytes, range->bytes, memory_order_relaxed);
    note_queued(qp, before + range->bytes);
    struct send_message *message = range->message;
    uint32_t channels = qp->channel_count;
    /* All counts first: a fast consumer must not see the message as finished between two channels. */
    uint32_t used = 0;
    for (uint32_t c = 0; c < channels; c++)
        used += send_range_touches(range, &qp->send_shape, c);
    atomic_fetch_add_explicit(&message->ranges, used, memory_order_relaxed);
    for (uint32_t c = 0; c < channels; c++)
        if (send_range_touches(range, &qp->send_shape, c))
            send_channel_post(&qp->channels[c].sends, range);
    note_fragments(range->message, immediate_fragments(qp->shape.split), range->first, range->count);
}

/* Queues the packets of a part. Room was checked. */
static void post_part(struct sdr_qp *qp, struct send_message *message, const struct part *part)
{
    uint32_t mtu = qp->shape.mtu_bytes;
    if (part->length == 0)
        return;
    struct send_range range = {
        .message = message,
        .payload =
            (const uint8_t *)(uintptr_t)part->address, /* NOLINT: the SDK gives addresses as integers */
        .bytes = part->length,
        .lkey = part->lkey,
        .first = (uint32_t)part->offset_chunks * qp->shape.chunk_packets,
        .count = (part->length + mtu - 1) / mtu,
    };
    post_range(qp, &range);
}

/* Sends the fragments of the immediate that no packet carried. Room was checked. */
static void post_fragments(struct sdr_qp *qp, struct send_message *message)
{
    uint32_t fragments = immediate_fragments(qp->shape.split);
    uint32_t all = fragments == 32 ? UINT32_MAX : (1u << fragments) - 1;
    if (!message->has_immediate || (message->fragments & all) == all)
        return;
    uint32_t first = (uint32_t)__builtin_ctz(~message->fragments);
    struct send_range range = {.message = message, .first = first, .count = fragments - first};
    post_range(qp, &range);
}

/* Room for a part, and for the fragments that no packet of it carries. */
static int hold_part(struct sdr_qp *qp, uint32_t length, bool ends)
{
    uint32_t mtu = qp->shape.mtu_bytes;
    uint32_t packets = length / mtu + (length % mtu != 0);
    return qp_hold_ranges(qp, 1u + ends, packets + (ends ? immediate_fragments(qp->shape.split) : 0));
}

static int as_sdr(int error)
{
    return error == -LH_EAGAIN ? SDR_RETRY : error ? SDR_ERROR : SDR_SUCCESS;
}

/* Programs spin while the matching receive is not posted: they neither take the lock nor format a reason.
 */
static int check_send(struct sdr_qp *qp)
{
    int error = qp_usable(qp);
    if (!error && !qp->send_enable)
        error = lh_fail(LH_ESTATE, "QP was created without send_enable");
    if (!error && !atomic_load_explicit(&qp->cts_waiting, memory_order_acquire))
        error = -LH_EAGAIN;
    return error;
}

static int send_locked(struct sdr_qp *qp, const struct sdr_send_wr *wr, struct sdr_send_handle **handle)
{
    const struct part part = {wr->local_addr, wr->remote_offset, wr->length, wr->lkey};
    const struct control_cts *cts = cts_queue_peek(&qp->cts);
    if (!cts)
        return lh_fail(LH_EAGAIN, "the matching receive is not posted yet");
    int error = check_part(qp, &part, cts->length_bytes);
    if (error)
        return error;
    error = hold_part(qp, wr->length, true);
    if (error)
        return error;
    error = start_locked(qp, wr->opcode, wr->imm_value, false, handle);
    if (error)
        return error;
    struct send_message *message = &(*handle)->message;
    post_part(qp, message, &part);
    post_fragments(qp, message);
    message->ended = true;
    return 0;
}

int sdr_send_post(struct sdr_qp *qp, struct sdr_send_wr *wr, struct sdr_send_handle **handle)
{
    int error = check_send(qp);
    if (error)
        return as_sdr(error);
    qp_lock(qp);
    error = send_locked(qp, wr, handle);
    qp_unlock(qp);
    if (!error)
        qp_wake_all(qp);
    return as_sdr(error);
}

int sdr_streaming_send_start(struct sdr_qp *qp, struct sdr_send_start_wr *wr,
                             struct sdr_send_handle **handle)
{
    int error = check_send(qp);
    if (error)
        return as_sdr(error);
    qp_lock(qp);
    error = qp_hold_ranges(qp, 1, 1); /* so that each part finds some */
    if (!error)
        error = start_locked(qp, wr->opcode, wr->imm_value, true, handle);
    qp_unlock(qp);
    return as_sdr(error);
}

static int continue_locked(struct sdr_send_handle *handle, const struct part *part)
{
    struct sdr_qp *qp = handle->qp;
    struct send_message *message = &handle->message;
    if (!message->in_use || !message->streaming || message->ended)
        return lh_fail(LH_ESTATE, "send has ended: no more chunks can be added");
    int error = check_part(qp, part, message->length_bytes);
    if (error)
        return error;
    error = hold_part(qp, part->length, false);
    if (!error)
        error = check_end(qp, message, part);
    if (error)
        return error;
    post_part(qp, message, part);
    return 0;
}

int sdr_streaming_send_continue(struct sdr_send_handle *handle, struct sdr_send_continue_wr *wr)
{
    struct sdr_qp *qp = handle->qp;
    const struct part part = {wr->local_addr, wr->remote_offset, wr->length, wr->lkey};
    int error = qp_usable(qp);
    if (error)
        return as_sdr(error);
    qp_lock(qp);
    error = continue_locked(handle, &part);
    qp_unlock(qp);
    if (!error)
        qp_wake_all(qp);
    return as_sdr(error);
}

int sdr_streaming_send_end(struct sdr_send_handle *handle)
{
    struct sdr_qp *qp = handle->qp;
    int error = 0;
    qp_lock(qp);
    if (!handle->message.in_use || handle->message.ended)
        error = lh_fail(LH_ESTATE, "send has ended already");
    else
        error = qp_hold_ranges(qp, 1, immediate_fragments(qp->shape.split));
    if (!error) {
        post_fragments(qp, &handle->message);
        handle->message.ended = true;
    }
    qp_unlock(qp);
    if (!error)
        qp_wake_all(qp);
    return as_sdr(error);
}

int lh_sdr_streaming_send_abort(struct sdr_send_handle *handle)
{
    struct sdr_qp *qp = handle->qp;
    qp_lock(qp);
    if (handle->message.in_use) {
        /* With the gates held no worker reads payload: when this returns, none will again. */
        qp_gates_enter(qp);
        handle->message.ended = true;
        atomic_store(&handle->message.aborted, true);
        qp_gates_leave(qp);
    }
    qp_unlock(qp);
    qp_wake_all(qp);
    return 0;
}

int sdr_send_poll(struct sdr_send_handle *handle, int *completed_flag, struct sdr_send_status *status)
{
    struct sdr_qp *qp = handle->qp;
    struct send_message *message = &handle->message;
    *completed_flag = 0;
    /* First without the lock: programs spin here. */
    if (atomic_load_explicit(&message->ranges, memory_order_acquire) > 0)
        return SDR_RETRY;
    bool kick = false;
    qp_lock(qp);
    bool done = message->in_use && message->ended && atomic_load(&message->ranges) == 0;
    if (done) {
        message->in_use = false;
        handle->next = qp->sends.unused;
        qp->sends.unused = handle;
        qp->sends.in_use--;
        kick = qp_note_unused(qp);
        *completed_flag = 1;
        if (status)
            status->flags = atomic_load(&message->aborted) ? 1 : 0;
    }
    qp_unlock(qp);
    if (kick)
        sdr_qp_driver_kick(qp);
    return done ? SDR_SUCCESS : SDR_RETRY;
}

int lh_sdr_cts_peek(struct sdr_qp *qp, struct lh_cts *out)
{
    if (!atomic_load_explicit(&qp->cts_waiting, memory_order_acquire))
        return -LH_EAGAIN;
    qp_lock(qp);
    const struct control_cts *cts = cts_queue_peek(&qp->cts);
    if (cts) {
        *out = (struct lh_cts){.sequence = cts->sequence, .length_bytes = cts->length_bytes};
        memcpy(out->upper, cts->upper, sizeof out->upper);
    }
    qp_unlock(qp);
    /* Polled in every step: no reason is formatted for the usual answer. */
    return cts ? 0 : -LH_EAGAIN;
}

int lh_sdr_cts_skip(struct sdr_qp *qp)
{
    bool kick = false;
    qp_lock(qp);
    bool any = cts_queue_peek(&qp->cts) != NULL;
    if (any) {
        cts_queue_pop(&qp->cts);
        kick = qp_note_unused(qp);
    }
    qp_note_cts(qp);
    qp_unlock(qp);
    if (kick)
        sdr_qp_driver_kick(qp);
    return any ? 0 : -LH_EAGAIN;
}

uint64_t lh_sdr_send_queued_bytes(struct sdr_qp *qp)
{
    return atomic_load_explicit(&qp->queued_bytes, memory_order_acquire);
}

uint64_t sdr_qp_send_unsent_bytes(struct sdr_qp *qp)
{
    uint64_t queued = lh_sdr_send_queued_bytes(qp), maximum = 0;
    if (queued == 0 || qp->channel_count == 1)
        return queued;
    qp_lock(qp);
    for (uint32_t c = 0; c < qp->channel_count; c++) {
        uint64_t before;
        if (send_channel_waits(&qp->channels[c].sends, &before))
            maximum = lh_max(maximum, qp->payload_posted - before);
    }
    qp_unlock(qp);
    /* What a channel has just taken has not left before it counts there. */
    return lh_max(maximum, lh_sdr_send_queued_bytes(qp));
}

lh_time lh_sdr_send_left_ns(struct sdr_qp *qp)
{
    return atomic_load_explicit(&qp->sends_left_ns, memory_order_relaxed);
}
