/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "connection/receiver.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "connection/arrivals.h"
#include "connection/auto_scheme.h"
#include "connection/done.h"
#include "connection/number.h"
#include "connection/verdict.h"
#include "sdr/driver.h"

#define MACHINE_ALIGNMENT 64u

int receiver_init(struct lh_connection *c)
{
    struct receiver *r = &c->receiver;
    uint32_t chunks = (uint32_t)(c->attr.slot_bytes / c->attr.chunk_bytes);
    size_t bytes = scheme_receiver_bytes_max(&c->choice, chunks);
    size_t machine_bytes = (bytes + MACHINE_ALIGNMENT - 1) / MACHINE_ALIGNMENT * MACHINE_ALIGNMENT;
    r->messages = calloc(MESSAGES_MAX, sizeof *r->messages);
    r->segments = calloc(c->attr.slots, sizeof *r->segments);
    r->machines = aligned_alloc(MACHINE_ALIGNMENT, c->attr.slots * machine_bytes);
    if (!r->messages || !r->segments || !r->machines)
        return lh_fail(LH_ENOMEM, "no memory for %u receivers of %zu bytes", c->attr.slots, machine_bytes);
    for (uint32_t i = 0; i < c->attr.slots; i++)
        r->segments[i].machine = (uint8_t *)r->machines + i * machine_bytes;
    return 0;
}

void receiver_free(struct lh_connection *c)
{
    free(c->receiver.messages);
    free(c->receiver.segments);
    free(c->receiver.machines);
}

/* ---- messages ---------------------------------------------------------------------------------------- */

static uint32_t segments_of(const struct recv_message *message, uint64_t bytes)
{
    uint64_t segment = message->segment_bytes;
    return bytes == 0 ? 1 : (uint32_t)((bytes + segment - 1) / segment);
}

/* Settles by which scheme it comes, and so how it is cut. */
static void choose_scheme(struct lh_connection *c, struct recv_message *message)
{
    assert(message->posted == 0 && message->bytes == MESSAGE_BYTES_UNKNOWN);
    message->choice = c->choice;
    auto_scheme_choose(c, message->room, &message->choice);
    message->segment_bytes = scheme_segment_bytes(&message->choice, &c->attr);
    message->segments = segments_of(message, message->room);
}

static struct recv_message *add_message(struct lh_connection *c, void *buffer, uint64_t room)
{
    struct recv_message *message = recv_message_at(c, c->receiver.next);
    int error = message->error; /* canceled ahead */
    bool forgotten = message->forgotten;
    *message = (struct recv_message){
        .state = RECV_OPEN,
        .number = c->receiver.next++,
        .buffer = buffer,
        .room = room,
        .bytes = MESSAGE_BYTES_UNKNOWN,
        .segments = 1,
        .error = error,
        .forgotten = forgotten,
    };
    return message;
}

static int check_message(const struct lh_connection *c, uint64_t room)
{
    const struct receiver *r = &c->receiver;
    if (c->error)
        return lh_fail((enum lh_error) - c->error, "connection has ended: %s", c->reason);
    if (!c->attached)
        return lh_fail(LH_ESTATE, "connection is not attached yet: lh_attach() first");
    if (room > TRANSFER_ROOM_MAX || room / auto_scheme_segment_bytes_min(c) >= INT32_MAX)
        return lh_fail(LH_EINVAL, "room of %llu bytes: too long", (unsigned long long)room);
    if (r->next - r->oldest == MESSAGES_MAX)
        return lh_fail(LH_EAGAIN, "%u messages are in flight: wait for one", MESSAGES_MAX);
    return 0;
}

static int recv_locked(struct lh_connection *c, void *buffer, size_t room, struct lh_memory *memory,
                       struct lh_request **out)
{
    lh_time now = lh_sdr_now(c->context);
    struct message_memory known;
    int error = check_message(c, room);
    if (!error)
        error = message_memory_get(c, buffer, room, memory, &known);
    if (error)
        return error;
    struct lh_request *request = request_take(c->requests, false, c->receiver.next, now);
    if (!request) {
        message_memory_put(&known);
        return lh_fail(LH_EAGAIN, "%u requests are in use: free those that are done", LH_REQUESTS_MAX);
    }
    struct recv_message *message = add_message(c, buffer, room);
    message->request = request;
    message->memory = known;
    if (message->forgotten)
        receiver_end_message(c, message, -message->error, RECV_OVER, now);
    else if (message->error)
        verdict_refuse(c, message, (enum lh_error)message->error, now);
    receiver_retire(c);
    c->touched = true;
    *out = request;
    return 0;
}

int lh_recv(struct lh_connection *connection, void *buffer, size_t room, struct lh_memory *memory,
            struct lh_request **request)
{
    pthread_mutex_lock(&connection->requests->lock);
    int error = recv_locked(connection, buffer, room, memory, request);
    pthread_mutex_unlock(&connection->requests->lock);
    if (!error)
        sdr_qp_driver_kick(connection->qp);
    return error;
}

static void finish_message(struct lh_connection *c, struct recv_message *message, int error,
                           enum recv_state state, lh_time now)
{
    assert(message->state == RECV_OPEN && state != RECV_OPEN);
    message_memory_put(&message->memory);
    message->state = state;
    request_finish(message->request, error, message->bytes == MESSAGE_BYTES_UNKNOWN ? 0 : message->bytes,
                   now);
    message->request = NULL;
    if (error)
        c->stats.messages_failed++;
    else
        c->stats.messages_received++;
}

static bool is_over(struct lh_connection *c, uint32_t number)
{
    return number_before(number, c->receiver.oldest) || recv_message_at(c, number)->state == RECV_OVER;
}

void receiver_retire(struct lh_connection *c)
{
    struct receiver *r = &c->receiver;
    /* Both bounded by their rings. */
    for (; r->segment_oldest != r->segment_next; r->segment_oldest++) {
        struct recv_segment *segment = recv_segment_at(c, r->segment_oldest);
        bool open = segment->state == SEGMENT_OPEN || segment->state == SEGMENT_PARITY;
        bool failed = segment->state == SEGMENT_FAILED && !is_over(c, segment->message);
        if (open || failed || segment->coded.jobs > 0)
            break;
        segment->state = SEGMENT_FREE;
    }
    while (r->oldest != r->next && recv_message_at(c, r->oldest)->state == RECV_OVER) {
        *recv_message_at(c, r->oldest) = (struct recv_message){0};
        r->oldest++;
    }
    if (number_before(r->posting, r->oldest))
        r->posting = r->oldest;
}

/* ---- segments ---------------------------------------------------------------------------------------- */

static void close_parity(struct lh_connection *c, struct recv_segment *segment,
                         enum recv_segment_state state)
{
    struct coded_recv *coded = &segment->coded;
    if (coded->handle) {
        struct recv_segment *place = recv_segment_at(c, segment->sequence + 1);
        assert(place->state == SEGMENT_PARITY);
        sdr_recv_complete(coded->handle);
        coded->handle = NULL;
        coded->bitmap = NULL;
        place->state = state;
    }
    if (segment->sequence + 1 == c->receiver.segment_next)
        c->receiver.parity_due = false;
    if (coded->buffer && coded->jobs == 0) {
        parity_give(c, coded->buffer);
        coded->buffer = NULL;
    }
}

static void close_segment(struct lh_connection *c, struct recv_segment *segment,
                          enum recv_segment_state state)
{
    assert(segment->state == SEGMENT_OPEN);
    sdr_recv_complete(segment->handle);
    segment->handle = NULL;
    segment->bitmap = NULL;
    segment->state = state;
    close_parity(c, segment, state);
}

void receiver_end_message(struct lh_connection *c, struct recv_message *message, int error,
                          enum recv_state state, lh_time now)
{
    struct receiver *r = &c->receiver;
    for (uint32_t n = r->segment_oldest; n != r->segment_next; n++) { /* at most attr.slots */
        struct recv_segment *segment = recv_segment_at(c, n);
        if (segment->state == SEGMENT_OPEN && segment->message == message->number)
            close_segment(c, segment, SEGMENT_FAILED);
    }
    finish_message(c, message, error, state, now);
}

void receiver_end_all(struct lh_connection *c, int error, lh_time now)
{
    coder_finish(c, now);
    for (uint32_t n = c->receiver.oldest; n != c->receiver.next; n++) { /* at most MESSAGES_MAX */
        struct recv_message *message = recv_message_at(c, n);
        if (message->state == RECV_OPEN)
            receiver_end_message(c, message, error, RECV_OVER, now);
    }
}

static void count_segment(struct lh_connection *c, struct recv_message *message, lh_time now)
{
    assert(message->state == RECV_OPEN && message->done < message->segments);
    message->done++;
    if (message->done == message->segments)
        finish_message(c, message, 0, RECV_OVER, now);
}

/* The bitmaps as they are, for the decoder: the slots are closed and used again before it is done. */
static void keep_bitmaps(struct recv_segment *segment, uint32_t chunks)
{
    struct coded_recv *coded = &segment->coded;
    uint8_t *notes = coded->buffer->notes;
    assert(chunks + coded->extra_chunks <= coded->buffer->notes_bytes);
    for (uint32_t i = 0; i < chunks; i++)
        notes[i] = __atomic_load_n(&segment->bitmap[i], __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < coded->extra_chunks; i++)
        notes[chunks + i] = __atomic_load_n(&coded->bitmap[i], __ATOMIC_ACQUIRE);
}

/* Decodes once the slots are closed: no packet changes the buffer under the decoder's hands. */
static void decode_segment(struct lh_connection *c, struct recv_segment *segment,
                           const struct recv_message *message)
{
    struct coded_recv *coded = &segment->coded;
    uint32_t chunks = (segment->bytes + c->attr.chunk_bytes - 1) / c->attr.chunk_bytes;
    assert(coded->buffer && coded->bitmap);
    coded->coding = (struct lh_coding){
        .chunks = chunks,
        .chunk_bytes = c->attr.chunk_bytes,
        .bytes = segment->bytes,
        .room = message->buffer + segment->index * message->segment_bytes,
        .extra = coded->buffer->chunks,
    };
    memcpy(coded->coding.params, message->choice.params, sizeof coded->coding.params);
    coded->coding.message = coded->coding.room;
    keep_bitmaps(segment, chunks);
    coded->jobs = 1; /* until the coder counts: the buffer stays */
    close_segment(c, segment, SEGMENT_DONE);
    done_note(c, segment->sequence);
    coder_decode(c, segment);
}

void receiver_segment_done(struct lh_connection *c, struct recv_segment *segment, bool whole, lh_time now)
{
    struct recv_message *message = recv_message_at(c, segment->message);
    assert(message->state == RECV_OPEN && message->bytes != MESSAGE_BYTES_UNKNOWN);
    auto_scheme_segment_over(c, segment, now);
    if (!whole) {
        decode_segment(c, segment, message);
        return;
    }
    close_segment(c, segment, SEGMENT_DONE);
    done_note(c, segment->sequence);
    count_segment(c, message, now);
}

void receiver_segment_decoded(struct lh_connection *c, struct recv_segment *segment, lh_time now)
{
    assert(segment->state == SEGMENT_DONE && segment->coded.jobs == 0);
    parity_give(c, segment->coded.buffer);
    segment->coded.buffer = NULL;
    count_segment(c, recv_message_at(c, segment->message), now);
}

/* ---- posting ----------------------------------------------------------------------------------------- */

static void make_upper(const struct recv_message *message, uint32_t index, bool extra,
                       uint8_t upper[LH_CTS_UPPER_BYTES])
{
    struct transfer_cts cts = {
        .message = message->number,
        .segment = index,
        .room = message->room,
        .scheme = message->choice.scheme->id,
        .extra = extra,
    };
    memcpy(cts.params, message->choice.params, sizeof cts.params);
    transfer_cts_encode(&cts, upper);
}

static void open_segment(struct lh_connection *c, struct recv_message *message,
                         struct sdr_recv_handle *handle, uint32_t bytes, lh_time now)
{
    uint32_t sequence = c->receiver.segment_next++;
    struct recv_segment *segment = recv_segment_at(c, sequence);
    assert(segment->state == SEGMENT_FREE && lh_sdr_recv_sequence(handle) == sequence);
    uint8_t *bitmap;
    size_t bitmap_bytes;
    sdr_recv_bitmap_get(handle, &bitmap, &bitmap_bytes);
    assert(segment->coded.jobs == 0 && !segment->coded.buffer);
    *segment = (struct recv_segment){
        .state = SEGMENT_OPEN,
        .touched = true,
        .sequence = sequence,
        .message = message->number,
        .index = message->posted++,
        .posted_bytes = bytes,
        .bytes = bytes,
        .handle = handle,
        .bitmap = bitmap,
        .scheme = message->choice.scheme,
        .machine = segment->machine,
        .last_arrival_ns = LH_TIME_NEVER,
        .later_seen_ns = LH_TIME_NEVER,
        .next_ns = LH_TIME_NEVER,
    };
    arrival_watch_init(&segment->watch);
    const struct lh_scheme_coding *coding = segment->scheme->coding;
    if (coding && bytes > 0)
        segment->coded.extra_chunks = coding->extra_chunks(
            message->choice.params, (bytes + c->attr.chunk_bytes - 1) / c->attr.chunk_bytes);
    c->receiver.parity_due = segment->coded.extra_chunks > 0;
    arrivals_start(c, segment, message->choice.params, now);
}

/* Posts a receive; NULL when there is no room for it now, or the message was refused. Parity has the length
 * of its buffer, which is nobody else's. */
static struct sdr_recv_handle *post(struct lh_connection *c, struct recv_message *message,
                                    struct sdr_recv_wr *wr, bool extra, lh_time now)
{
    struct sdr_recv_handle *handle;
    uint8_t upper[LH_CTS_UPPER_BYTES];
    uint32_t index = extra ? message->posted - 1 : message->posted;
    make_upper(message, index, extra, upper);
    int error = extra ? lh_sdr_recv_post(c->qp, wr, upper, &handle)
                      : sdr_recv_post_unsized(c->qp, wr, upper, &handle);
    c->receiver.post_refused = error == -LH_EAGAIN;
    if (error == 0)
        return handle;
    if (error != -LH_EAGAIN && lh_sdr_error(c->qp) == 0) /* else the next step ends the connection */
        verdict_refuse(c, message, (enum lh_error) - error, now);
    return NULL;
}

static struct parity_buffer *take_buffer(struct lh_connection *c, const struct recv_message *message)
{
    const struct lh_scheme_coding *coding = message->choice.scheme->coding;
    uint32_t chunks = (uint32_t)(message->segment_bytes / c->attr.chunk_bytes);
    uint32_t extra = coding->extra_chunks(message->choice.params, chunks);
    return parity_take(c, (size_t)extra * c->attr.chunk_bytes, (size_t)chunks + extra);
}

/* What is sent has parity, too, but that is no help: the peer may have no memory to receive it. */
static bool will_give_parity_back(const struct lh_connection *c)
{
    for (uint32_t i = 0; i < c->attr.slots; i++)
        if (c->receiver.segments[i].coded.buffer)
            return true;
    return false;
}

/* The parity of the newest segment. False when there is no room for it now. */
static bool post_parity(struct lh_connection *c, lh_time now)
{
    struct receiver *r = &c->receiver;
    struct recv_segment *segment = recv_segment_at(c, r->segment_next - 1);
    struct coded_recv *coded = &segment->coded;
    struct recv_message *message = recv_message_at(c, segment->message);
    assert(segment->state == SEGMENT_OPEN && coded->extra_chunks > 0);
    if (!coded->buffer)
        coded->buffer = take_buffer(c, message);
    if (!coded->buffer) {
        if (!will_give_parity_back(c))
            verdict_refuse(c, message, LH_ENOMEM, now);
        return false;
    }
    struct sdr_recv_wr wr = {
        .max_length = coded->extra_chunks * c->attr.chunk_bytes,
        .lkey = coded->buffer->lkey,
        .address = (uint64_t)(uintptr_t)coded->buffer->chunks,
    };
    assert(segment->index + 1 == message->posted);
    coded->handle = post(c, message, &wr, true, now);
    if (!coded->handle)
        return false;
    uint8_t *bitmap;
    size_t bitmap_bytes;
    sdr_recv_bitmap_get(coded->handle, &bitmap, &bitmap_bytes);
    coded->bitmap = bitmap;
    uint32_t sequence = r->segment_next++;
    assert(lh_sdr_recv_sequence(coded->handle) == sequence);
    *recv_segment_at(c, sequence) = (struct recv_segment){
        .state = SEGMENT_PARITY,
        .sequence = sequence,
        .message = segment->message,
        .machine = recv_segment_at(c, sequence)->machine,
        .next_ns = LH_TIME_NEVER,
    };
    r->parity_due = false;
    return true;
}

/* False when there is no room for it now. */
static bool post_segment(struct lh_connection *c, struct recv_message *message, lh_time now)
{
    uint64_t offset = message->posted * message->segment_bytes;
    uint64_t end = message->bytes == MESSAGE_BYTES_UNKNOWN ? message->room : message->bytes;
    uint64_t left = end - offset;
    uint32_t bytes = (uint32_t)(left < message->segment_bytes ? left : message->segment_bytes);
    struct sdr_recv_wr wr = {
        .max_length = bytes,
        .lkey = message->memory.lkey,
        .address = bytes ? (uint64_t)(uintptr_t)(message->buffer + offset) : 0,
    };
    struct sdr_recv_handle *handle = post(c, message, &wr, false, now);
    if (!handle)
        return false;
    if (message->bytes != MESSAGE_BYTES_UNKNOWN)
        lh_sdr_recv_truncate(handle, bytes); /* cannot fail: no packet has come yet */
    open_segment(c, message, handle, bytes, now);
    return true;
}

/* Where the scheme codes, a segment takes two places. */
static bool has_place(const struct lh_connection *c, const struct recv_message *message)
{
    const struct receiver *r = &c->receiver;
    uint32_t places = message->choice.scheme->coding ? 2 : 1;
    return r->segment_next - r->segment_oldest + places <= c->attr.slots;
}

void receiver_post(struct lh_connection *c, lh_time now)
{
    struct receiver *r = &c->receiver;
    receiver_retire(c);
    r->post_refused = false;
    if (r->parity_due && !post_parity(c, now))
        return;
    /* Bounded by the two rings: each turn posts a segment or moves on to the next message. */
    while (r->posting != r->next) {
        struct recv_message *message = recv_message_at(c, r->posting);
        if (message->state != RECV_OPEN || message->posted >= message->segments) {
            r->posting++;
            continue;
        }
        if (message->posted == 0 && !auto_scheme_may_start(c))
            return;
        if (message->posted == 0)
            choose_scheme(c, message);
        if (!has_place(c, message) || !post_segment(c, message, now) ||
            (r->parity_due && !post_parity(c, now)))
            return;
    }
}

/* ---- lengths ----------------------------------------------------------------------------------------- */

/* False when packets have come that the message of this length does not have. */
static bool cut_segment(struct lh_connection *c, struct recv_segment *segment,
                        const struct recv_message *message)
{
    uint64_t offset = segment->index * message->segment_bytes;
    if (segment->index >= message->segments) {
        close_segment(c, segment, SEGMENT_UNNEEDED);
        return true;
    }
    uint64_t left = message->bytes - offset;
    segment->bytes = (uint32_t)(left < segment->posted_bytes ? left : segment->posted_bytes);
    segment->touched = true;
    return lh_sdr_recv_truncate(segment->handle, segment->bytes) == 0;
}

static void learn_length(struct lh_connection *c, struct recv_message *message, uint64_t bytes, lh_time now)
{
    struct receiver *r = &c->receiver;
    if (bytes > message->room) {
        verdict_refuse(c, message, LH_ETRUNCATED, now);
        return;
    }
    message->bytes = bytes;
    message->segments = segments_of(message, bytes);
    for (uint32_t n = r->segment_oldest; n != r->segment_next; n++) { /* at most attr.slots */
        struct recv_segment *segment = recv_segment_at(c, n);
        bool own = segment->state == SEGMENT_OPEN && segment->message == message->number;
        if (own && !cut_segment(c, segment, message)) {
            verdict_refuse(c, message, LH_EPROTOCOL, now);
            return;
        }
    }
}

/* Whether these lengths can be those of this segment. */
static bool lengths_possible(const struct recv_segment *segment, const struct recv_message *message,
                             const struct transfer_message *told)
{
    uint64_t bytes = told->body.to_receiver.message_bytes;
    uint64_t offset = segment->index * message->segment_bytes;
    if (told->body.to_receiver.message != segment->message)
        return false;
    if (message->bytes != MESSAGE_BYTES_UNKNOWN && message->bytes != bytes)
        return false;
    if (offset > bytes || (offset == bytes && segment->index > 0))
        return false;
    uint64_t left = bytes - offset;
    uint64_t most = message->segment_bytes;
    return told->body.to_receiver.segment_bytes == (left < most ? left : most);
}

static void on_open_segment(struct lh_connection *c, struct recv_segment *segment,
                            const struct transfer_message *told, lh_time now)
{
    struct recv_message *message = recv_message_at(c, segment->message);
    if (!lengths_possible(segment, message, told)) {
        c->stats.bad_control++;
        return;
    }
    arrivals_note_seen(c, segment->sequence, now);
    if (message->bytes == MESSAGE_BYTES_UNKNOWN)
        learn_length(c, message, told->body.to_receiver.message_bytes, now);
    /* Of a message that was refused just now the peer sends nothing. */
    if (segment->state == SEGMENT_OPEN && told->body.to_receiver.segment_bytes > 0)
        data_path_on_announced(c, told->body.to_receiver.segment_bytes, now);
    if (c->error)
        return;
    if (segment->state == SEGMENT_OPEN && told->body.to_receiver.scheme_bytes > 0)
        arrivals_on_scheme(c, segment, told->body.to_receiver.scheme, told->body.to_receiver.scheme_bytes,
                           now);
}

void receiver_on_to_receiver(struct lh_connection *c, const struct transfer_message *message, lh_time now)
{
    struct receiver *r = &c->receiver;
    uint32_t sequence = message->body.to_receiver.segment;
    if (!number_before(sequence, r->segment_next)) {
        c->stats.bad_control++; /* was never cleared to be sent */
        return;
    }
    if (number_before(sequence, r->segment_oldest)) {
        done_answer(c, sequence);
        return;
    }
    struct recv_segment *segment = recv_segment_at(c, sequence);
    if (segment->state == SEGMENT_OPEN)
        on_open_segment(c, segment, message, now);
    else if (segment->state == SEGMENT_FAILED)
        verdict_answer(c, segment->message);
    else if (segment->state == SEGMENT_DONE)
        done_answer(c, sequence);
    else if (segment->state == SEGMENT_PARITY)
        c->stats.bad_control++; /* all words go to the segment itself */
}
