/*
 * fake_sdr.h - an SDR layer for unit tests of the parts of a connection: what a test sets is what the part
 * sees, and what the part hands down is kept for the test to look at.
 *
 * Included once by a test: it defines the calls, so the linker takes none of src/sdr.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef UNIT_MESSAGE_FAKE_SDR_H
#define UNIT_MESSAGE_FAKE_SDR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/connection.h>
#include <longhaul/sdr_ext.h>
#include <sdr.h>
#include <sdr_mr.h>

#include "sdr/sdr_driver.h"
#include "store/store.h"
#include "wire/control_messages.h"

#define FAKE_HANDLES 64u
#define FAKE_CHUNKS  64u
#define FAKE_LOG     4096u
#define RTT_NS       (10 * LH_NS_PER_MS)
#define OVERDUE_NS   (12 * LH_NS_PER_MS)
#define WINDOW_NS    (1 * LH_NS_PER_MS)

struct sdr_context {
    lh_time now;
    struct store store;
};

struct sdr_mr {
    bool in_use;
};

struct sdr_send_handle {
    uint32_t sequence;
    bool in_use;
    bool ended;
    bool aborted;
};

struct sdr_recv_handle {
    uint32_t sequence;
    uint32_t max_length;
    uint32_t arrived;
    uint64_t truncated; /* UINT64_MAX: not yet */
    bool extra;
    bool completed;
    struct transfer_cts cts;
    uint8_t bitmap[FAKE_CHUNKS];
    uint64_t end_bytes; /* a short packet ended it there; 0: none came */
};

/* A chunk, or several, given to the QP. */
struct fake_chunks {
    uint32_t sequence;
    uint32_t length;
    uint64_t offset; /* in chunks */
    const uint8_t *bytes;
};

struct sdr_qp {
    /* what the part sees */
    struct lh_cts cts[FAKE_HANDLES];
    uint32_t cts_head; /* next to be used */
    uint32_t cts_tail;
    uint64_t queued_bytes;
    uint64_t unsent_bytes; /* 0: as many as queued */
    uint32_t looks;        /* after so many at what is unsent another worker lets all out; 0: none does */
    lh_time left_ns;
    bool queue_full;         /* no chunk is taken */
    uint32_t queue_room;     /* so many more runs of chunks are, then none; 0: any number */
    bool chunks_fail;        /* nor can be */
    bool control_queue_full; /* no message is taken */
    bool holds_sends;        /* an aborted send has not left the fabric */
    bool truncate_fails;
    int post_error;
    bool full_arrived; /* a packet of the MTU */
    int error;
    lh_time caught_up_ns;
    struct lh_sdr_path path;
    struct lh_stats stats;
    /* what it hands down */
    struct sdr_send_handle sends[FAKE_HANDLES];
    struct sdr_recv_handle recvs[FAKE_HANDLES];
    uint32_t recv_next;
    struct fake_chunks chunks[FAKE_LOG];
    uint32_t chunk_count;
    struct transfer_message messages[FAKE_LOG];
    uint32_t message_count;
    lh_time catch_up_ns;
    lh_time keepalive_ns;
    bool keepalive_wanted;
    bool keepalive_shared;
    uint32_t kicks;
};

static struct sdr_context context;
static struct sdr_qp qp;
static struct sdr_mr registrations[FAKE_HANDLES];
static uint32_t registrations_left = FAKE_HANDLES;

static inline void fake_sdr_reset(void)
{
    context = (struct sdr_context){0};
    store_init(&context.store, UINT64_MAX);
    qp = (struct sdr_qp){0};
    qp.path = (struct lh_sdr_path){.rtt_ns = RTT_NS,
                                   .rtt_minimum_ns = RTT_NS,
                                   .overdue_ns = OVERDUE_NS,
                                   .reorder_window_ns = WINDOW_NS};
    memset(registrations, 0, sizeof registrations);
    registrations_left = FAKE_HANDLES;
}

/* The newest control message; it must be of this kind. */
static inline const struct transfer_message *fake_last(enum transfer_kind kind)
{
    assert_true(qp.message_count > 0);
    assert_int_equal(qp.messages[qp.message_count - 1].kind, kind);
    return &qp.messages[qp.message_count - 1];
}

/* ---- control messages, path ------------------------------------------------------------------------- */

int lh_sdr_message_send(struct sdr_qp *own, const void *data, size_t bytes)
{
    if (own->control_queue_full)
        return -LH_EAGAIN;
    assert_true(own->message_count < FAKE_LOG);
    static uint8_t kept[FAKE_LOG][TRANSFER_BYTES_MAX];
    memcpy(kept[own->message_count], data, bytes);
    assert_int_equal(transfer_decode(kept[own->message_count], bytes, &own->messages[own->message_count]),
                     0);
    own->message_count++;
    return 0;
}

int lh_sdr_path(struct sdr_qp *own, struct lh_sdr_path *path)
{
    *path = own->path;
    return 0;
}

int lh_sdr_stats(struct sdr_qp *own, struct lh_stats *stats)
{
    *stats = own->stats;
    return 0;
}

uint64_t sdr_qp_rx_packets(const struct sdr_qp *own)
{
    return own->stats.rx_packets;
}

uint32_t sdr_qp_probed(struct sdr_qp *own, lh_time since)
{
    (void)own;
    (void)since;
    return 0;
}

bool sdr_qp_full_arrived(struct sdr_qp *own)
{
    bool full = own->full_arrived;
    own->full_arrived = false;
    return full;
}

int lh_sdr_error(struct sdr_qp *own)
{
    return own->error;
}

lh_time lh_sdr_now(struct sdr_context *own)
{
    return own->now;
}

struct store *sdr_context_store(struct sdr_context *own)
{
    return &own->store;
}

void sdr_qp_driver_kick(struct sdr_qp *own)
{
    __atomic_fetch_add(&own->kicks, 1, __ATOMIC_RELAXED);
}

void sdr_qp_keepalive_set(struct sdr_qp *own, lh_time span_ns)
{
    own->keepalive_ns = span_ns;
}

bool sdr_qp_keepalive_want(struct sdr_qp *own, bool wanted, lh_time now)
{
    (void)now;
    own->keepalive_wanted = wanted;
    return own->keepalive_shared;
}

uint64_t sdr_qp_rx_bytes(const struct sdr_qp *own)
{
    return own->stats.rx_bytes;
}

lh_time sdr_qp_caught_up(struct sdr_qp *own)
{
    return own->caught_up_ns;
}

void sdr_qp_catch_up(struct sdr_qp *own, lh_time since)
{
    own->catch_up_ns = since;
}

/* ---- sends ------------------------------------------------------------------------------------------- */

/* The next clear-to-send. */
static inline void fake_cts(const struct transfer_cts *cts, uint32_t length_bytes)
{
    struct lh_cts *raw = &qp.cts[qp.cts_tail % FAKE_HANDLES];
    *raw = (struct lh_cts){.sequence = qp.cts_tail++, .length_bytes = length_bytes};
    transfer_cts_encode(cts, raw->upper);
}

int lh_sdr_cts_peek(struct sdr_qp *own, struct lh_cts *cts)
{
    if (own->cts_head == own->cts_tail)
        return -LH_EAGAIN;
    *cts = own->cts[own->cts_head % FAKE_HANDLES];
    return 0;
}

int lh_sdr_cts_skip(struct sdr_qp *own)
{
    assert_true(own->cts_head != own->cts_tail);
    own->cts_head++;
    return 0;
}

int sdr_streaming_send_start(struct sdr_qp *own, struct sdr_send_start_wr *wr,
                             struct sdr_send_handle **handle)
{
    (void)wr;
    assert_true(own->cts_head != own->cts_tail);
    *handle = &own->sends[own->cts_head % FAKE_HANDLES];
    assert_false((*handle)->in_use);
    **handle = (struct sdr_send_handle){.sequence = own->cts_head++, .in_use = true};
    return SDR_SUCCESS;
}

int sdr_streaming_send_continue(struct sdr_send_handle *handle, struct sdr_send_continue_wr *wr)
{
    assert_true(handle->in_use && !handle->ended && !handle->aborted);
    if (qp.queue_full)
        return SDR_RETRY;
    if (qp.queue_room > 0)
        qp.queue_full = --qp.queue_room == 0;
    if (qp.chunks_fail)
        return SDR_ERROR;
    assert_true(qp.chunk_count < FAKE_LOG);
    qp.chunks[qp.chunk_count++] = (struct fake_chunks){handle->sequence, wr->length, wr->remote_offset,
                                                       (const uint8_t *)(uintptr_t)wr->local_addr};
    return SDR_SUCCESS;
}

int sdr_streaming_send_end(struct sdr_send_handle *handle)
{
    assert_true(handle->in_use && !handle->ended);
    handle->ended = true;
    return SDR_SUCCESS;
}

int sdr_send_poll(struct sdr_send_handle *handle, int *completed, struct sdr_send_status *status)
{
    (void)status;
    assert_true(handle->in_use);
    *completed = !qp.holds_sends;
    handle->in_use = qp.holds_sends;
    return SDR_SUCCESS;
}

int lh_sdr_streaming_send_abort(struct sdr_send_handle *handle)
{
    handle->aborted = true;
    return 0;
}

uint64_t lh_sdr_send_queued_bytes(struct sdr_qp *own)
{
    return own->queued_bytes;
}

uint64_t sdr_qp_send_unsent_bytes(struct sdr_qp *own)
{
    uint64_t unsent = own->unsent_bytes > own->queued_bytes ? own->unsent_bytes : own->queued_bytes;
    if (own->looks > 0 && --own->looks == 0)
        own->queued_bytes = own->unsent_bytes = 0;
    return unsent;
}

lh_time lh_sdr_send_left_ns(struct sdr_qp *own)
{
    return own->left_ns;
}

/* ---- receives ---------------------------------------------------------------------------------------- */

int lh_sdr_recv_post(struct sdr_qp *own, struct sdr_recv_wr *wr, const uint8_t upper[LH_CTS_UPPER_BYTES],
                     struct sdr_recv_handle **handle)
{
    if (own->post_error)
        return own->post_error;
    *handle = &own->recvs[own->recv_next % FAKE_HANDLES];
    **handle = (struct sdr_recv_handle){
        .sequence = own->recv_next++, .max_length = wr->max_length, .truncated = UINT64_MAX};
    assert_int_equal(transfer_cts_decode(upper, &(*handle)->cts), 0);
    return 0;
}

uint32_t lh_sdr_recv_sequence(const struct sdr_recv_handle *handle)
{
    return handle->sequence;
}

int lh_sdr_recv_truncate(struct sdr_recv_handle *handle, uint64_t bytes)
{
    assert_false(handle->completed);
    handle->truncated = bytes;
    return qp.truncate_fails ? -LH_ESTATE : 0;
}

uint32_t lh_sdr_recv_chunks_arrived(const struct sdr_recv_handle *handle)
{
    return handle->arrived;
}

int sdr_recv_bitmap_get(struct sdr_recv_handle *handle, uint8_t **bitmap, size_t *bytes)
{
    *bitmap = handle->bitmap;
    *bytes = sizeof handle->bitmap;
    return SDR_SUCCESS;
}

int sdr_recv_complete(struct sdr_recv_handle *handle)
{
    assert_false(handle->completed);
    handle->completed = true;
    return SDR_SUCCESS;
}

int sdr_recv_close(struct sdr_recv_handle *handle, struct sdr_recv_arrived *arrived)
{
    for (uint32_t i = 0; arrived->bitmap && i < arrived->packets; i++) /* its chunks are packets */
        if (handle->bitmap[i])
            arrived->bitmap[(arrived->first + i) / 64] |= (uint64_t)1 << ((arrived->first + i) % 64);
    arrived->end_bytes = handle->end_bytes ? handle->end_bytes : UINT32_MAX;
    return sdr_recv_complete(handle);
}

/* A chunk of the receive with this sequence arrives. */
static inline void fake_arrive(uint32_t sequence, uint32_t chunk)
{
    struct sdr_recv_handle *handle = &qp.recvs[sequence % FAKE_HANDLES];
    assert_true(handle->sequence == sequence && !handle->completed && !handle->bitmap[chunk]);
    handle->bitmap[chunk] = 1;
    handle->arrived++;
}

/* ---- memory ------------------------------------------------------------------------------------------ */

struct sdr_mr *sdr_mr_reg(struct sdr_context *own, void *address, size_t length,
                          enum sdr_access_flags access)
{
    (void)own, (void)address, (void)length, (void)access;
    for (uint32_t i = 0; i < registrations_left; i++)
        if (!registrations[i].in_use) {
            registrations[i].in_use = true;
            return &registrations[i];
        }
    return NULL;
}

void sdr_mr_drop(struct sdr_mr *mr)
{
    assert_true(mr->in_use);
    mr->in_use = false;
}

int sdr_mr_lkey_get(struct sdr_mr *mr, uint32_t *lkey)
{
    *lkey = 100 + (uint32_t)(mr - registrations);
    return SDR_SUCCESS;
}

#endif
