/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/bitmap.h"
#include "base/error.h"
#include "sdr/qp.h"
#include "sdr/qp_parts.h"
#include "sdr/sdr_state.h"
#include "sdr/sdr_driver.h"

static int check_recv(struct sdr_qp *qp, const struct sdr_recv_wr *wr)
{
    int error = atomic_load(&qp->error);
    if (error)
        return lh_fail((enum lh_error) - error, "QP has ended: %s", qp_error_reason(qp, error));
    if (!qp->recv_enable)
        return lh_fail(LH_ESTATE, "QP was created without recv_enable");
    if (wr->max_length > qp->shape.slot_bytes)
        return lh_fail(LH_ERANGE, "receive of %u bytes: exceeds the message size limit of this QP, %llu",
                       wr->max_length, (unsigned long long)qp->shape.slot_bytes);
    return 0;
}

/* Under the QP's lock until the receive is posted: sdr_mr_dereg() must not come in between. */
static int check_memory(struct sdr_qp *qp, const struct sdr_recv_wr *wr)
{
    if (memory_covers(qp->context, wr->lkey, wr->address, wr->max_length))
        return 0;
    return lh_fail(LH_EKEY, "lkey %u does not cover %u bytes at 0x%llx: register them with sdr_mr_reg",
                   wr->lkey, wr->max_length, (unsigned long long)wr->address);
}

/* Opens the slot in the table and in the fabric, in that order: the fabric may let a packet in at once. */
static int open_slot(struct sdr_qp *qp, uint32_t slot, const struct sdr_recv_wr *wr,
                     struct control_cts *cts)
{
    struct message_slot *entry = &qp->table.slots[slot];
    struct fabric_slot bind = {
        .base = (uint8_t *)(uintptr_t)wr->address, /* NOLINT: the SDK gives addresses as integers */
        .length_bytes = wr->max_length,
        .lkey = wr->lkey,
        .generation = entry->generation,
        .received = entry->packets,
    };
    struct fabric_slot_key key;
    *cts = (struct control_cts){
        .slot = (uint16_t)slot, .generation = entry->generation, .length_bytes = wr->max_length};
    qp_gates_enter(qp);
    message_slot_open(&qp->table, slot, wr->max_length);
    int error = qp->endpoint->fabric->ops->slot_bind(qp->endpoint, slot, &bind, &key);
    if (error)
        message_slot_close(&qp->table, slot);
    qp_gates_leave(qp);
    if (error)
        return error;
    cts->rkey = key.rkey;
    cts->base = key.base;
    return 0;
}

static void give_slot_back(struct sdr_qp *qp, uint32_t slot)
{
    qp->free_slots[(qp->free_head + qp->free_count++) % qp->shape.slots].slot = (uint16_t)slot;
}

/* What is posted at once may be sent at once. */
static void note_posted(struct sdr_qp *qp)
{
    if (qp->receive_buffer_bytes == 0 || qp->posted_bytes <= qp->receive_buffer_bytes ||
        !sdk_warning_due(qp->context, SDK_WARNING_POSTED))
        return;
    const char *warning = lh_sdr_warning(qp->context);
    if (warning)
        sdk_warn(qp->context, SDK_WARNING_POSTED, "sdr_recv_post: %s", warning);
}

static int post_locked(struct sdr_qp *qp, const struct sdr_recv_wr *wr, const uint8_t *upper,
                       struct sdr_recv_handle **handle)
{
    int error = check_memory(qp, wr);
    if (error)
        return error;
    if (qp->free_count == 0)
        return lh_fail(LH_EAGAIN, "all %u receives are posted", qp->shape.slots);
    if (qp->announcer.next - qp->announcer.acked == qp->announcer.size)
        return lh_fail(LH_EAGAIN, "the last %u receives are not acknowledged by the peer yet",
                       qp->announcer.size);
    uint32_t slot, acked = qp->announcer.acked;
    struct control_cts cts;
    error = qp_hold_slots(qp);
    if (error)
        return error;
    slot = qp->free_slots[qp->free_head].slot;
    error = qp_hold_slot(qp, slot, wr->max_length);
    if (!error && !qp_hold(qp, &qp->announcer.ring, acked, qp->announcer.next - acked + 1))
        error = -LH_ENOMEM;
    if (!error)
        error = open_slot(qp, slot, wr, &cts);
    if (error)
        return error;
    qp->free_head = (qp->free_head + 1) % qp->shape.slots;
    qp->free_count--;
    if (upper)
        memcpy(cts.upper, upper, sizeof cts.upper);
    cts_announce(&qp->announcer, &cts);
    qp->recvs[slot] = (struct sdr_recv_handle){qp, slot, cts.sequence, wr->max_length, wr->lkey};
    *handle = &qp->recvs[slot];
    qp->posted_bytes += wr->max_length;
    note_posted(qp);
    return 0;
}

int lh_sdr_recv_post(struct sdr_qp *qp, struct sdr_recv_wr *wr, const uint8_t upper[LH_CTS_UPPER_BYTES],
                     struct sdr_recv_handle **handle)
{
    int error = check_recv(qp, wr);
    if (error)
        return error;
    qp_lock(qp);
    error = post_locked(qp, wr, upper, handle);
    qp_unlock(qp);
    if (!error)
        sdr_qp_driver_kick(qp);
    return error;
}

int sdr_recv_post(struct sdr_qp *qp, struct sdr_recv_wr *wr, struct sdr_recv_handle **handle)
{
    int error = lh_sdr_recv_post(qp, wr, NULL, handle);
    return error == -LH_EAGAIN ? SDR_RETRY : error ? SDR_ERROR : SDR_SUCCESS;
}

/* Of a receive that is over there may be none any more: a closed one. */
static struct message_slot *slot_of(const struct sdr_recv_handle *handle)
{
    static struct message_slot closed;
    struct message_slot *slots = handle->qp->table.slots;
    return slots ? &slots[handle->slot] : &closed;
}

uint32_t lh_sdr_recv_sequence(const struct sdr_recv_handle *handle)
{
    return handle->sequence;
}

uint32_t lh_sdr_recv_chunks_arrived(const struct sdr_recv_handle *handle)
{
    return message_slot_chunks_arrived(slot_of(handle));
}

int lh_sdr_recv_truncate(struct sdr_recv_handle *handle, uint64_t bytes)
{
    struct sdr_qp *qp = handle->qp;
    if (bytes > handle->length_bytes)
        return lh_fail(LH_ERANGE, "receive of %u bytes cannot be truncated to %llu", handle->length_bytes,
                       (unsigned long long)bytes);
    int error = 0;
    qp_lock(qp);
    if (!slot_of(handle)->open)
        error = lh_fail(LH_ESTATE, "receive %u is completed", handle->sequence);
    else if (!message_slot_truncate(&qp->table, handle->slot, bytes))
        error = lh_fail(LH_ESTATE, "receive %u: %llu bytes contradict its packets or an earlier length",
                        handle->sequence, (unsigned long long)bytes);
    qp_unlock(qp);
    return error;
}

int sdr_recv_imm_get(struct sdr_recv_handle *handle, uint32_t *immediate)
{
    return message_slot_immediate(&handle->qp->table, slot_of(handle), immediate) ? SDR_SUCCESS : SDR_RETRY;
}

int sdr_recv_bitmap_get(struct sdr_recv_handle *handle, uint8_t **bitmap_bytes, size_t *bitmap_num_bytes)
{
    struct message_slot *slot = slot_of(handle);
    *bitmap_bytes = (uint8_t *)slot->chunks;
    *bitmap_num_bytes = slot->chunk_count;
    return SDR_SUCCESS;
}

int sdr_recv_bitmap_chunk_expand(struct sdr_recv_handle *handle, uint32_t chunk_offset, uint64_t *bitmap)
{
    const struct message_slot *slot = slot_of(handle);
    uint32_t chunk_packets = handle->qp->shape.chunk_packets;
    if (chunk_offset >= slot->chunk_count) {
        lh_fail(LH_ERANGE, "chunk %u: the receive has %u chunks", chunk_offset, slot->chunk_count);
        return SDR_ERROR;
    }
    if (chunk_packets >= 64) {
        uint32_t words = chunk_packets / 64;
        for (uint32_t i = 0; i < words; i++)
            bitmap[i] =
                atomic_load_explicit(&slot->packets[chunk_offset * words + i], memory_order_acquire);
        return SDR_SUCCESS;
    }
    uint32_t first = chunk_offset * chunk_packets;
    uint64_t word = atomic_load_explicit(&slot->packets[first / 64], memory_order_acquire);
    *bitmap = (word >> (first % 64)) & (((uint64_t)1 << chunk_packets) - 1);
    return SDR_SUCCESS;
}

/* Closed slots keep their bitmaps until they are posted again. */
static void note_arrived(const struct message_slot *slot, struct sdr_recv_arrived *arrived)
{
    arrived->end_bytes = message_extent_end(&slot->extent);
    for (uint32_t at = 0; arrived->bitmap && at < arrived->packets; at += 64) { /* a word each time */
        uint64_t word = atomic_load_explicit(&slot->packets[at / 64], memory_order_acquire);
        if (arrived->packets - at < 64)
            word &= ((uint64_t)1 << (arrived->packets - at)) - 1;
        for (; word != 0; word &= word - 1) /* at most 64 */
            lh_bitmap_set(arrived->bitmap, arrived->first + at + (uint32_t)__builtin_ctzll(word));
    }
}

/* Whether the driver must know that the QP has become unused. */
static bool close_slot(struct sdr_recv_handle *handle)
{
    struct sdr_qp *qp = handle->qp;
    qp_gates_enter(qp);
    qp->endpoint->fabric->ops->slot_unbind(qp->endpoint, handle->slot);
    message_slot_close(&qp->table, handle->slot);
    qp_gates_leave(qp);
    give_slot_back(qp, handle->slot);
    qp->posted_bytes -= handle->length_bytes;
    return qp_note_unused(qp);
}

int sdr_recv_close(struct sdr_recv_handle *handle, struct sdr_recv_arrived *arrived)
{
    struct sdr_qp *qp = handle ? handle->qp : NULL;
    if (!qp) {
        lh_fail(LH_EINVAL, "no receive");
        return SDR_ERROR;
    }
    int result = SDR_SUCCESS;
    bool kick = false;
    qp_lock(qp);
    if (!slot_of(handle)->open) {
        lh_fail(LH_ESTATE, "receive %u is completed already", handle->sequence);
        result = SDR_ERROR;
    } else {
        kick = close_slot(handle);
        if (arrived)
            note_arrived(slot_of(handle), arrived);
    }
    qp_unlock(qp);
    if (kick)
        sdr_qp_driver_kick(qp);
    return result;
}

int sdr_recv_complete(struct sdr_recv_handle *handle)
{
    return sdr_recv_close(handle, NULL);
}
