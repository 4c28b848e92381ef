/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/rx/posting.h"

#include <assert.h>
#include <string.h>

#include "message/control/machine.h"
#include "message/rx/arrivals.h"
#include "message/rx/auto_scheme.h"
#include "message/rx/messages.h"
#include "message/rx/partial.h"
#include "message/rx/refuse.h"
#include "sdr/driver.h"

static void make_upper(const struct rx_message *message, uint32_t index, bool extra,
                       uint8_t upper[LH_CTS_UPPER_BYTES])
{
    struct transfer_cts cts = {
        .message = message->number,
        .segment = index,
        .room = message->capacity,
        .scheme = message->choice.scheme->id,
        .extra = extra,
    };
    memcpy(cts.params, message->choice.params, sizeof cts.params);
    transfer_cts_encode(&cts, upper);
}

/* Where the packets of a segment are placed. */
struct rx_place {
    uint32_t bytes;
    struct message_part part;
    struct parity_buffer *copied; /* or NULL */
};

static void open_segment(struct rx *rx, struct rx_message *message, struct sdr_recv_handle *handle,
                         const struct rx_place *place, lh_time now)
{
    uint32_t bytes = place->bytes;
    uint32_t sequence = rx->segment_next++;
    struct rx_segment *segment = rx_segment_at(rx, sequence);
    assert(segment->state == SEGMENT_FREE && lh_sdr_recv_sequence(handle) == sequence);
    uint8_t *bitmap;
    size_t bitmap_bytes;
    sdr_recv_bitmap_get(handle, &bitmap, &bitmap_bytes);
    assert(segment->coded.jobs == 0 && !segment->coded.buffer && !segment->copied);
    *segment = (struct rx_segment){
        .state = SEGMENT_OPEN,
        .needs_step = true,
        .sequence = sequence,
        .message = message->number,
        .index = message->posted++,
        .posted_bytes = bytes,
        .bytes = bytes,
        .payload = place->part.address,
        .copied = place->copied,
        .handle = handle,
        .bitmap = bitmap,
        .scheme = message->choice.scheme,
        .machine = segment->machine,
        .machine_bytes = segment->machine_bytes,
        .last_arrival_ns = LH_TIME_NEVER,
        .later_seen_ns = LH_TIME_NEVER,
        .later_arrival_ns = LH_TIME_NEVER,
        .next_ns = LH_TIME_NEVER,
    };
    arrival_watch_init(&segment->watch);
    const struct lh_scheme_coding *coding = segment->scheme->coding;
    if (coding && bytes > 0)
        segment->coded.extra_chunks =
            coding->extra_chunks(message->choice.params, rx_segment_chunks(rx, segment));
    rx->parity_due = segment->coded.extra_chunks > 0;
    arrivals_start(rx, segment, message->choice.params, now);
}

/* Posts a receive; NULL when there is no place for it now, or the message was refused. Parity has the length
 * of its buffer, which is nobody else's. */
static struct sdr_recv_handle *post(struct rx *rx, struct rx_message *message, struct sdr_recv_wr *wr,
                                    bool extra, lh_time now)
{
    struct sdr_recv_handle *handle;
    uint8_t upper[LH_CTS_UPPER_BYTES];
    uint32_t index = extra ? message->posted - 1 : message->posted;
    make_upper(message, index, extra, upper);
    int error = lh_sdr_recv_post(rx->qp, wr, upper, &handle);
    rx->post_refused = error == -LH_EAGAIN || error == -LH_ENOMEM; /* there may be memory later */
    if (error == 0)
        return handle;
    if (!rx->post_refused && lh_sdr_error(rx->qp) == 0) /* else the next step ends the connection */
        refuse_message(rx, message, -error, now);
    return NULL;
}

typedef struct parity_buffer *take_parity(struct parity_pool *pool, size_t bytes, size_t notes_bytes);

static struct parity_buffer *take_buffer(struct rx *rx, const struct rx_message *message, take_parity *take)
{
    const struct lh_scheme_coding *coding = message->choice.scheme->coding;
    uint32_t chunks = (uint32_t)(message->segment_bytes / rx->attr->chunk_bytes);
    uint32_t extra = coding->extra_chunks(message->choice.params, chunks);
    /* The bitmaps, and of a message with a deadline which chunks were recovered. */
    size_t notes = (size_t)chunks * (coding->recoverable ? 2 : 1) + extra;
    return take(rx->parity, (size_t)extra * rx->attr->chunk_bytes, notes);
}

/* What is sent has such memory, too, but that is no help: the peer may have none to receive it. Nor is what a
 * segment has that waits for more. */
static bool will_give_back(const struct rx *rx)
{
    const struct rx_segment *waits = rx->parity_due ? rx_segment_at(rx, rx->segment_next - 1) : NULL;
    for (uint32_t i = 0; i < rx->attr->slots; i++)
        if (&rx->segments[i] != waits && (rx->segments[i].coded.buffer || rx->segments[i].copied))
            return true;
    return false;
}

/* As many as the message has, where that is known before it is cleared to be sent. */
static uint64_t bytes_expected(const struct rx_message *message)
{
    return message->bytes == MESSAGE_BYTES_UNKNOWN ? message->capacity : message->bytes;
}

static void set_scheme(struct rx_message *message, const struct scheme_choice *choice,
                       const struct lh_attr *attr)
{
    message->choice = *choice;
    message->segment_bytes = scheme_segment_bytes(choice, attr);
    message->segments = rx_segments_of(message, bytes_expected(message));
}

/* For parity of one segment, kept for it; the others of the message can wait for that. */
static bool has_memory(struct rx *rx, const struct rx_message *message)
{
    if (!message->choice.scheme->coding)
        return true;
    struct parity_buffer *buffer = take_buffer(rx, message, parity_try);
    if (buffer)
        parity_give(rx->parity, buffer);
    return buffer || will_give_back(rx);
}

/* Settles by which scheme it comes, and so how it is cut. What nobody named, or what the path demands by
 * itself, needs no memory that is not there. */
static void choose_scheme(struct rx *rx, struct rx_message *message, lh_time now)
{
    assert(message->posted == 0);
    struct scheme_choice choice = rx->choice;
    auto_scheme_choose(rx, bytes_expected(message), now, &choice);
    set_scheme(message, &choice, rx->attr);
    bool named = !rx->choice.automatic && !rx->choice.scheme->measured;
    if (named || has_memory(rx, message))
        return;
    auto_scheme_spare(rx, &choice);
    set_scheme(message, &choice, rx->attr);
}

/* Whether there was memory. Without, segments in flight will give theirs back, and where there are none the
 * message ends. */
static bool took(struct rx *rx, struct rx_message *message, const struct parity_buffer *buffer, lh_time now)
{
    if (!buffer && !will_give_back(rx))
        refuse_message(rx, message, LH_ENOMEM, now);
    return buffer != NULL;
}

/* The parity of the newest segment. False when there is no place for it now. */
static bool post_parity(struct rx *rx, lh_time now)
{
    struct rx_segment *segment = rx_segment_at(rx, rx->segment_next - 1);
    struct coded_rx *coded = &segment->coded;
    struct rx_message *message = rx_message_at(rx, segment->message);
    assert(segment->state == SEGMENT_OPEN && coded->extra_chunks > 0);
    if (!coded->buffer)
        coded->buffer = take_buffer(rx, message, parity_take);
    if (!took(rx, message, coded->buffer, now))
        return false;
    struct sdr_recv_wr wr = {
        .max_length = coded->extra_chunks * rx->attr->chunk_bytes,
        .lkey = coded->buffer->lkey,
        .address = (uint64_t)(uintptr_t)coded->buffer->chunks,
    };
    assert(segment->index + 1 == message->posted);
    coded->handle = post(rx, message, &wr, true, now);
    if (!coded->handle)
        return false;
    uint8_t *bitmap;
    size_t bitmap_bytes;
    sdr_recv_bitmap_get(coded->handle, &bitmap, &bitmap_bytes);
    coded->bitmap = bitmap;
    uint32_t sequence = rx->segment_next++;
    assert(lh_sdr_recv_sequence(coded->handle) == sequence);
    struct rx_segment *place = rx_segment_at(rx, sequence);
    *place = (struct rx_segment){
        .state = SEGMENT_PARITY,
        .sequence = sequence,
        .message = segment->message,
        .machine = place->machine,
        .machine_bytes = place->machine_bytes,
        .next_ns = LH_TIME_NEVER,
    };
    rx->parity_due = false;
    return true;
}

/* Memory for the state of the next segment's machine. False: none for now. */
static bool hold_machine(struct rx *rx, const struct rx_message *message, uint32_t bytes)
{
    struct rx_segment *place = rx_segment_at(rx, rx->segment_next);
    uint32_t chunks = (bytes + rx->attr->chunk_bytes - 1) / rx->attr->chunk_bytes;
    rx->post_refused = !machine_hold(&place->machine, &place->machine_bytes, rx->store,
                                     message->choice.scheme->receiver_bytes(chunks));
    return !rx->post_refused;
}

/* False when there is no memory now. Bytes of several parts are placed together, and copied when all of them
 * have arrived. */
static bool take_place(struct rx *rx, struct rx_message *message, struct rx_place *place, lh_time now)
{
    uint64_t offset = message->posted * message->segment_bytes;
    uint64_t left = bytes_expected(message) - offset;
    uint32_t bytes = (uint32_t)(left < message->segment_bytes ? left : message->segment_bytes);
    *place = (struct rx_place){.bytes = bytes};
    if (buffer_place(&message->buffer, offset, bytes, &place->part))
        return true;
    place->copied = parity_take(rx->parity, bytes, 0);
    if (!took(rx, message, place->copied, now))
        return false;
    place->part.address = place->copied->chunks;
    place->part.lkey = place->copied->lkey;
    return true;
}

/* False when there is no place for it now. */
static bool post_segment(struct rx *rx, struct rx_message *message, lh_time now)
{
    struct rx_place place;
    if (!take_place(rx, message, &place, now))
        return false;
    struct sdr_recv_wr wr = {
        .max_length = place.bytes,
        .lkey = place.part.lkey,
        .address = (uint64_t)(uintptr_t)place.part.address,
    };
    rx->post_refused = !partial_hold(rx, message);
    struct sdr_recv_handle *handle = !rx->post_refused && hold_machine(rx, message, place.bytes)
                                         ? post(rx, message, &wr, false, now)
                                         : NULL;
    if (!handle) {
        if (place.copied)
            parity_give(rx->parity, place.copied);
        return false;
    }
    if (message->bytes != MESSAGE_BYTES_UNKNOWN)
        lh_sdr_recv_truncate(handle, place.bytes); /* cannot fail: no packet has come yet */
    open_segment(rx, message, handle, &place, now);
    return true;
}

/* Where the scheme codes, a segment takes two places. */
static bool has_place(const struct rx *rx, const struct rx_message *message)
{
    uint32_t places = scheme_codes(&message->choice) ? 2 : 1;
    return rx->segment_next - rx->segment_oldest + places <= rx->attr->slots;
}

/* Nothing of it is posted, or nothing more. */
static bool is_posted(const struct rx *rx, const struct rx_message *message)
{
    return message->state != RX_OPEN || rx_is_carried(rx, message) || message->posted >= message->segments;
}

void posting_step(struct rx *rx, lh_time now)
{
    rx_retire(rx);
    rx->post_refused = false;
    if (rx->parity_due && !post_parity(rx, now))
        return;
    /* Bounded by the two rings: each turn posts a segment or moves on to the next message. */
    while (rx->posting != rx->next) {
        struct rx_message *message = rx_message_at(rx, rx->posting);
        if (is_posted(rx, message)) {
            rx->posting++;
            continue;
        }
        if (message->posted == 0 && !auto_scheme_may_start(rx))
            return;
        if (message->posted == 0)
            choose_scheme(rx, message, now);
        if (!has_place(rx, message) || !post_segment(rx, message, now) ||
            (rx->parity_due && !post_parity(rx, now)))
            return;
    }
}
