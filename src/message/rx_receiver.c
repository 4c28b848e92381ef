/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx_receiver.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/min_max.h"
#include "control/message_control.h"
#include "message/rx_messages.h"
#include "message/rx_state.h"
#include "sdr/sdr_driver.h"

/* ---- arrivals -------------------------------------------------------------------------------------- */

#define ROUNDS_MAX 64u /* of a machine whose list was full, in one step */

static bool length_known(const struct rx *rx, const struct rx_segment *segment)
{
    return rx_message_at(rx, segment->message)->bytes != MESSAGE_BYTES_UNKNOWN;
}

static struct lh_receiver_view view_of(const struct rx *rx, const struct rx_segment *segment, lh_time now)
{
    return (struct lh_receiver_view){
        .now = now,
        .path = timing_path_view(rx->path),
        .chunk_bitmap = segment->bitmap,
        .chunks_arrived = segment->arrived,
        .extra_bitmap = segment->coded.bitmap,
        .extra_arrived = segment->coded.arrived,
        .last_arrival_ns = segment->last_arrival_ns,
        .later_seen_ns = segment->later_seen_ns,
        .later_arrival_ns = segment->later_arrival_ns,
        .caught_up_ns = rx->caught_up_ns,
        .length_known = length_known(rx, segment),
        .chunks = rx_segment_chunks(rx, segment),
    };
}

/* A segment was posted; params are those of its scheme. */
static void arrivals_start(struct rx *rx, struct rx_segment *segment,
                           const uint8_t params[LH_SCHEME_PARAMS], lh_time now)
{
    if (segment->bytes == 0)
        return; /* nothing can arrive: it is done when the length is known */
    struct lh_transfer transfer = {
        .chunks = rx_segment_chunks(rx, segment), .chunk_bytes = rx->attr->chunk_bytes, .stats = rx->stats};
    memcpy(transfer.params, params, sizeof transfer.params);
    segment->scheme->receiver_start(segment->machine, &transfer, now);
}

/* Something of this segment was seen: those before it were reordered. */
static void arrivals_note_seen(struct rx *rx, uint32_t sequence, lh_time now)
{
    if (!number_before(rx->newest_seen, sequence))
        return;
    uint32_t from =
        number_before(rx->newest_seen, rx->segment_oldest) ? rx->segment_oldest : rx->newest_seen;
    for (uint32_t n = from; n != sequence && number_before(n, sequence); n++) { /* at most attr.slots */
        struct rx_segment *segment = rx_segment_at(rx, n);
        if (segment->state == SEGMENT_OPEN && segment->later_seen_ns == LH_TIME_NEVER) {
            segment->later_seen_ns = now;
            segment->needs_step = true;
        }
    }
    rx->newest_seen = sequence;
}

/* Chunks of a segment have arrived: all before it were sent. */
static void note_later(struct rx *rx, const struct rx_segment *later, lh_time now)
{
    for (uint32_t n = rx->segment_oldest; n != later->sequence; n++) { /* at most attr.slots */
        struct rx_segment *segment = rx_segment_at(rx, n);
        if (segment->state == SEGMENT_OPEN && segment->later_arrival_ns == LH_TIME_NEVER) {
            segment->later_arrival_ns = now;
            segment->needs_step = true;
        }
        if (segment->state == SEGMENT_OPEN && segment->message != later->message)
            segment->preempted = true;
    }
}

/* While a message is cut, fewer may show for a moment. */
static uint32_t gained(uint32_t before, uint32_t now)
{
    return now > before ? now - before : 0;
}

bool arrivals_poll(struct rx *rx, lh_time now)
{
    bool any = false;
    uint32_t fresh = 0;
    rx->caught_up_ns = sdr_qp_caught_up(rx->qp); /* before the bitmaps are read, for it speaks of them */
    for (uint32_t n = rx->segment_oldest; n != rx->segment_next; n++) { /* at most attr.slots */
        struct rx_segment *segment = rx_segment_at(rx, n);
        if (segment->state != SEGMENT_OPEN)
            continue;
        struct coded_rx *coded = &segment->coded;
        uint32_t arrived = lh_sdr_recv_chunks_arrived(segment->handle);
        uint32_t extra = coded->handle ? lh_sdr_recv_chunks_arrived(coded->handle) : 0;
        bool changed = arrived != segment->arrived || extra != coded->arrived;
        fresh += gained(segment->arrived, arrived) + gained(coded->arrived, extra);
        segment->arrived = arrived;
        coded->arrived = extra;
        auto_scheme_poll(rx, segment, changed, now);
        if (!changed)
            continue;
        if (segment->last_arrival_ns == LH_TIME_NEVER)
            note_later(rx, segment, now);
        segment->last_arrival_ns = now;
        segment->needs_step = true;
        arrivals_note_seen(rx, n, now);
        any = true;
    }
    auto_scheme_polled(rx, fresh, now);
    return any;
}

void arrivals_on_scheme(struct rx *rx, struct rx_segment *segment, const uint8_t *data, uint32_t bytes,
                        lh_time now)
{
    if (segment->posted_bytes == 0)
        return; /* it has no machine */
    struct lh_receiver_view view = view_of(rx, segment, now);
    segment->scheme->receiver_on_message(segment->machine, data, bytes, &view);
    segment->needs_step = true;
}

/* False when the segment has ended. */
static bool carry_out(struct rx *rx, struct rx_segment *segment, const struct lh_action *action,
                      lh_time now)
{
    switch (action->kind) {
    case LH_ACTION_SEND_MESSAGE:
        assert(action->what.message.bytes > 0 && action->what.message.bytes <= LH_SCHEME_MESSAGE_MAX);
        control_tx_to_sender(rx->qp, segment->sequence, action->what.message.data,
                             action->what.message.bytes);
        return true;
    case LH_ACTION_COMPLETE:
        assert(length_known(rx, segment));
        decoding_segment_done(
            rx, segment, !segment->scheme->coding || segment->arrived == rx_segment_chunks(rx, segment),
            now);
        return false;
    case LH_ACTION_FINISH:
        assert(length_known(rx, segment) && segment->scheme->deadline);
        decoding_segment_partial(rx, segment, segment->preempted ? LH_END_PREEMPTED : LH_END_LAST, now);
        return false;
    case LH_ACTION_FAIL:
        refuse_message(rx, rx_message_at(rx, segment->message), action->what.error, now);
        return false;
    case LH_ACTION_SEND_CHUNKS:
    case LH_ACTION_ENCODE:
    case LH_ACTION_SENT:
        break;
    }
    assert(false); /* only a sender sends chunks */
    return true;
}

static void run_machine(struct rx *rx, struct rx_segment *segment, lh_time now)
{
    struct lh_actions list, *actions = &list;
    segment->needs_step = true;
    for (uint32_t round = 0; round < ROUNDS_MAX && segment->needs_step; round++) {
        struct lh_receiver_view view = view_of(rx, segment, now);
        actions->count = 0;
        actions->next_ns = LH_TIME_NEVER;
        segment->scheme->receiver_step(segment->machine, &view, actions);
        assert(actions->count <= LH_ACTIONS_MAX);
        segment->next_ns = actions->next_ns;
        segment->needs_step = actions->count == LH_ACTIONS_MAX;
        for (uint32_t i = 0; i < actions->count; i++)
            if (!carry_out(rx, segment, &actions->list[i], now))
                return;
    }
}

static void step_segment(struct rx *rx, struct rx_segment *segment, lh_time now)
{
    if (rx_segment_chunks(rx, segment) > 0)
        run_machine(rx, segment, now);
    else if (length_known(rx, segment))
        decoding_segment_done(rx, segment, true, now);
    else
        segment->needs_step = false;
}

lh_time arrivals_step(struct rx *rx, uint32_t from, lh_time now, lh_time *next)
{
    lh_time expired = 0;
    for (uint32_t n = from; n != rx->segment_next; n++) { /* at most attr.slots */
        struct rx_segment *segment = rx_segment_at(rx, n);
        if (segment->state != SEGMENT_OPEN)
            continue;
        if (segment->next_ns <= now && segment->next_ns > expired)
            expired = segment->next_ns;
        if (segment->needs_step || segment->next_ns <= now)
            step_segment(rx, segment, now);
        if (segment->state != SEGMENT_OPEN)
            continue;
        lh_keep_earlier(next, segment->next_ns);
        if (rx->automatic)
            lh_keep_earlier(next, segment->watch.mark_at);
    }
    return expired;
}

/* ---- posting --------------------------------------------------------------------------------------- */

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

/* Parity chunks of a segment of so many bytes; a message that turns out to be shorter needs no more. */
static uint32_t extra_of(const struct rx *rx, const struct rx_message *message, uint64_t bytes,
                         uint32_t *chunks)
{
    *chunks = (uint32_t)((bytes + rx->attr->chunk_bytes - 1) / rx->attr->chunk_bytes);
    return *chunks > 0 ? message->choice.scheme->coding->extra_chunks(message->choice.params, *chunks) : 0;
}

static struct parity_buffer *take_buffer(struct rx *rx, const struct rx_message *message, uint64_t bytes,
                                         take_parity *take)
{
    const struct lh_scheme_coding *coding = message->choice.scheme->coding;
    uint32_t chunks, extra = extra_of(rx, message, bytes, &chunks);
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
    uint64_t bytes = lh_min(bytes_expected(message), message->segment_bytes);
    uint32_t chunks;
    if (extra_of(rx, message, bytes, &chunks) == 0)
        return true;
    struct parity_buffer *buffer = take_buffer(rx, message, bytes, parity_try);
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
    if (!coded->buffer) /* as posted, as extra_chunks is: the length may have become known since */
        coded->buffer = take_buffer(rx, message, segment->posted_bytes, parity_take);
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

/* ---- receiver -------------------------------------------------------------------------------------- */

void receiver_init(struct rx *rx, const struct lh_attr *attr, const struct scheme_choice *choice,
                   const struct lh_sdr_path *path, struct coder *coder, struct parity_pool *parity,
                   struct store *store)
{
    *rx = (struct rx){
        .attr = attr, .path = path, .coder = coder, .parity = parity, .choice = *choice, .store = store};
    rx->active_bytes = MESSAGE_BYTES_UNKNOWN;
    ring_init(&rx->messages, sizeof(struct rx_message), MESSAGES_MAX);
}

/* ---- memory ------------------------------------------------------------------------------------------ */

static size_t segments_bytes(const struct rx *rx)
{
    return rx->attr->slots * sizeof *rx->segments;
}

/* What it learns of the path stays. */
static int hold_automatic(struct rx *rx)
{
    struct auto_scheme *memory = store_take(rx->store, sizeof *memory);
    if (!memory)
        return -LH_ENOMEM;
    auto_scheme_init(rx, memory);
    return 0;
}

int receiver_hold(struct rx *rx, uint32_t count)
{
    bool measures = rx->choice.automatic || rx->choice.scheme->measured;
    if (measures && !rx->automatic && hold_automatic(rx))
        return -LH_ENOMEM;
    if (!rx->matched && !ring_hold(&rx->messages, rx->store, rx->oldest, rx->next - rx->oldest + count))
        return -LH_ENOMEM;
    if (!rx->segments)
        rx->segments = store_take(rx->store, segments_bytes(rx));
    return rx->segments ? 0 : -LH_ENOMEM;
}

static void free_segments(struct rx *rx)
{
    for (uint32_t i = 0; rx->segments && i < rx->attr->slots; i++)
        store_give(rx->store, rx->segments[i].machine, rx->segments[i].machine_bytes);
    store_give(rx->store, rx->segments, segments_bytes(rx));
    rx->segments = NULL;
}

void receiver_give_back(struct rx *rx)
{
    rx_retire(rx);
    if (rx->oldest != rx->next || rx->segment_oldest != rx->segment_next)
        return;
    free_segments(rx);
    auto_scheme_give_back(rx);
    if (!number_before(rx->next, rx->ahead))
        ring_free(&rx->messages, rx->store);
}

void receiver_close(struct rx *rx)
{
    free_segments(rx);
    auto_scheme_give_back(rx);
    store_give(rx->store, rx->automatic, sizeof *rx->automatic);
    ring_free(&rx->messages, rx->store);
}

/* ---- the user ---------------------------------------------------------------------------------------- */

int receiver_check(const struct rx *rx, uint64_t capacity)
{
    if (capacity > TRANSFER_ROOM_MAX || capacity / scheme_segment_bytes(&rx->choice, rx->attr) >= INT32_MAX)
        return lh_fail(LH_EINVAL, "buffer of %llu bytes: too long", (unsigned long long)capacity);
    if (!rx->matched && rx->next - rx->oldest == MESSAGES_MAX)
        return lh_fail(LH_EAGAIN, "%u messages are in flight: wait for one", MESSAGES_MAX);
    return 0;
}

void receiver_recv(struct rx *rx, struct message_request *request, const struct message_buffer *buffer,
                   uint64_t capacity, lh_time now)
{
    struct rx_message *message = rx_add_message(rx, request, buffer, capacity);
    if (message->forgotten)
        rx_end_message(rx, message, -message->notice.error, RX_OVER, now);
    else if (message->notice.error)
        refuse_message(rx, message, message->notice.error, now);
    rx_retire(rx);
}

void receiver_cancel(struct rx *rx, uint32_t number, lh_time now)
{
    refuse_message(rx, rx_message_at(rx, number), LH_ECANCELED, now);
}

void receiver_end_all(struct rx *rx, int error, lh_time now)
{
    decoding_finish(rx, now);
    for (uint32_t n = rx->oldest; n != rx->next; n++) { /* at most MESSAGES_MAX */
        struct rx_message *message = rx_message_at(rx, n);
        if (message->state == RX_OPEN)
            rx_end_message(rx, message, error, RX_OVER, now);
    }
}

void receiver_quiesce(struct rx *rx)
{
    for (uint32_t n = rx->oldest; n != rx->next; n++) /* at most MESSAGES_MAX */
        rx_message_at(rx, n)->state = RX_OVER;
    rx->refusing = 0;
    rx->ahead = rx->next;
    rx_retire(rx);
}

/* ---- time -------------------------------------------------------------------------------------------- */

void receiver_step(struct rx *rx, lh_time now, lh_time *next)
{
    lh_time expired = arrivals_step(rx, rx->segment_oldest, now, next);
    deadline_step(rx, now, next);
    /* A machine may wait for what other workers still have to poll, and those may be asleep. */
    if (rx->caught_up_ns < expired)
        sdr_qp_catch_up(rx->qp, expired);
}

void receiver_post(struct rx *rx, lh_time now, lh_time *next)
{
    uint32_t posted = rx->segment_next;
    posting_step(rx, now);
    arrivals_step(rx, posted, now, next); /* the machines of those that were just posted */
    deadline_on_posted(rx, now, next);
}

void receiver_announce(struct rx *rx, lh_time now, lh_time *next)
{
    refuse_on_refresh_expired(rx, now, next);
    done_step(rx, now, next);
}

/* ---- lengths --------------------------------------------------------------------------------------- */

/* False when packets have come that the message of this length does not have. */
static bool cut_segment(struct rx *rx, struct rx_segment *segment, const struct rx_message *message)
{
    uint64_t offset = segment->index * message->segment_bytes;
    if (segment->index >= message->segments) {
        rx_close_segment(rx, segment, SEGMENT_UNNEEDED);
        return true;
    }
    uint64_t left = message->bytes - offset;
    segment->bytes = (uint32_t)(left < segment->posted_bytes ? left : segment->posted_bytes);
    segment->needs_step = true;
    return lh_sdr_recv_truncate(segment->handle, segment->bytes) == 0;
}

/* 0, or the lh_error with which the message is to be refused. */
static int learn_length(struct rx *rx, struct rx_message *message, const struct transfer_message *announced)
{
    uint64_t bytes = announced->body.to_receiver.message_bytes;
    message->tag = announced->body.to_receiver.tag;
    if (bytes > message->capacity)
        return LH_ETRUNCATED;
    message->bytes = bytes;
    message->segments = rx_segments_of(message, bytes);
    for (uint32_t n = rx->segment_oldest; n != rx->segment_next; n++) { /* at most attr.slots */
        struct rx_segment *segment = rx_segment_at(rx, n);
        bool own = segment->state == SEGMENT_OPEN && segment->message == message->number;
        if (own && !cut_segment(rx, segment, message))
            return LH_EPROTOCOL;
    }
    return 0;
}

/* Whether these lengths, and the tag, can be those of this segment. */
static bool lengths_possible(const struct rx_segment *segment, const struct rx_message *message,
                             const struct transfer_message *announced)
{
    uint64_t bytes = announced->body.to_receiver.message_bytes;
    uint64_t offset = segment->index * message->segment_bytes;
    if (announced->body.to_receiver.message != segment->message)
        return false;
    if (message->bytes != MESSAGE_BYTES_UNKNOWN &&
        (message->bytes != bytes || message->tag != announced->body.to_receiver.tag))
        return false;
    if (offset > bytes || (offset == bytes && segment->index > 0))
        return false;
    uint64_t left = bytes - offset;
    uint64_t limit = message->segment_bytes;
    return announced->body.to_receiver.segment_bytes == (left < limit ? left : limit);
}

/* False when the data path is broken: the connection ends. */
static bool data_passes(struct rx *rx, uint32_t bytes, lh_time now)
{
    char reason[REASON_MAX];
    const struct data_path_view view = {
        .bytes = bytes,
        .mtu_bytes = rx->attr->mtu_bytes,
        .packets = sdr_qp_rx_packets(rx->qp),
        .full = sdr_qp_full_arrived(rx->qp),
        .overdue_ns = rx->path->overdue_ns,
        .timeout_ns = rx->attr->peer_timeout_ns,
    };
    if (bytes == 0)
        return true;
    enum data_path_state state = data_path_on_announced(&rx->data_path, &view, now);
    if (state == DATA_PATH_PASSES)
        return true;
    uint32_t probed_bytes = sdr_qp_probed(rx->qp, data_path_since(&view, now));
    data_path_reason(&rx->data_path, state, rx->attr->mtu_bytes, probed_bytes, reason, sizeof reason);
    effects_fail(rx->effects, LH_EPATH, reason);
    return false;
}

static void on_open_segment(struct rx *rx, struct rx_segment *segment,
                            const struct transfer_message *announced, lh_time now)
{
    struct rx_message *message = rx_message_at(rx, segment->message);
    if (!lengths_possible(segment, message, announced)) {
        rx->stats->bad_control++;
        return;
    }
    arrivals_note_seen(rx, segment->sequence, now);
    int error = 0;
    if (message->bytes == MESSAGE_BYTES_UNKNOWN)
        error = learn_length(rx, message, announced);
    if (error) {
        refuse_message(rx, message, error, now);
        return;
    }
    if (!data_passes(rx, announced->body.to_receiver.segment_bytes, now))
        return;
    if (announced->body.to_receiver.scheme_bytes > 0)
        arrivals_on_scheme(rx, segment, announced->body.to_receiver.scheme,
                           announced->body.to_receiver.scheme_bytes, now);
}

void lengths_on_to_receiver(struct rx *rx, const struct transfer_message *message, lh_time now)
{
    uint32_t sequence = message->body.to_receiver.segment;
    if (!number_before(sequence, rx->segment_next)) {
        rx->stats->bad_control++; /* was never cleared to be sent */
        return;
    }
    if (number_before(sequence, rx->segment_oldest)) {
        done_answer(rx, sequence);
        return;
    }
    struct rx_segment *segment = rx_segment_at(rx, sequence);
    if (segment->state == SEGMENT_OPEN)
        on_open_segment(rx, segment, message, now);
    else if (segment->state == SEGMENT_FAILED)
        refuse_answer(rx, segment->message);
    else if (done_is(rx, segment))
        done_answer(rx, sequence);
    else if (segment->state == SEGMENT_PARITY)
        rx->stats->bad_control++; /* all messages go to the segment itself */
}
