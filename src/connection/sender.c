/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "connection/sender.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "connection/injector.h"
#include "connection/number.h"
#include "connection/tell.h"
#include "connection/verdict.h"
#include "sdr/driver.h"

#define BITS_PER_BYTE     8u
#define LONG_LINK_BPS     100000000000u /* a link this fast is kept full, however long it is */
#define STARTS_A_STEP     64u           /* each says a few things, and the SDR layer's queue takes 256 */
#define MACHINE_ALIGNMENT 64u

static size_t rounded_up(size_t bytes)
{
    return (bytes + MACHINE_ALIGNMENT - 1) / MACHINE_ALIGNMENT * MACHINE_ALIGNMENT;
}

int sender_init(struct lh_connection *c)
{
    struct sender *s = &c->sender;
    uint32_t chunks = (uint32_t)(c->attr.slot_bytes / c->attr.chunk_bytes);
    size_t machine_bytes = rounded_up(scheme_sender_bytes_max(c->attr.scheme, chunks));
    s->messages = calloc(MESSAGES_MAX, sizeof *s->messages);
    s->segments = calloc(c->attr.slots, sizeof *s->segments);
    s->held = calloc(HELD_MAX, sizeof *s->held);
    s->ending = calloc(2 * (size_t)c->attr.slots, sizeof *s->ending);
    s->machines = aligned_alloc(MACHINE_ALIGNMENT, c->attr.slots * machine_bytes);
    if (!s->messages || !s->segments || !s->held || !s->ending || !s->machines)
        return lh_fail(LH_ENOMEM, "no memory for %u senders of %zu bytes", c->attr.slots, machine_bytes);
    for (uint32_t i = 0; i < c->attr.slots; i++)
        s->segments[i].machine = (uint8_t *)s->machines + i * machine_bytes;
    return 0;
}

void sender_free(struct lh_connection *c)
{
    free(c->sender.messages);
    free(c->sender.segments);
    free(c->sender.held);
    free(c->sender.ending);
    free(c->sender.machines);
}

/* ---- messages ---------------------------------------------------------------------------------------- */

static struct send_message *add_message(struct lh_connection *c, const void *buffer, uint64_t bytes)
{
    struct send_message *message = send_message_at(c, c->sender.next);
    int error = message->error; /* refused ahead */
    *message = (struct send_message){
        .state = SEND_OPEN,
        .number = c->sender.next++,
        .buffer = buffer,
        .bytes = bytes,
        .segments = 1,
        .error = error,
    };
    return message;
}

static int check_message(const struct lh_connection *c, uint64_t bytes)
{
    const struct sender *s = &c->sender;
    if (c->error)
        return lh_fail((enum lh_error) - c->error, "connection has ended: %s", c->reason);
    if (!c->attached)
        return lh_fail(LH_ESTATE, "connection is not attached yet: lh_attach() first");
    if (bytes > TRANSFER_ROOM_MAX || bytes / c->attr.slot_bytes >= INT32_MAX)
        return lh_fail(LH_EINVAL, "message of %llu bytes: too long", (unsigned long long)bytes);
    if (s->next - s->oldest == MESSAGES_MAX)
        return lh_fail(LH_EAGAIN, "%u messages are in flight: wait for one", MESSAGES_MAX);
    return 0;
}

static int send_locked(struct lh_connection *c, const void *buffer, size_t bytes, struct lh_memory *memory,
                       struct lh_request **out)
{
    lh_time now = lh_sdr_now(c->context);
    struct message_memory known;
    int error = check_message(c, bytes);
    if (!error)
        error = message_memory_get(c, buffer, bytes, memory, &known);
    if (error)
        return error;
    struct lh_request *request = request_take(c->requests, true, c->sender.next, now);
    if (!request) {
        message_memory_put(&known);
        return lh_fail(LH_EAGAIN, "%u requests are in use: free those that are done", LH_REQUESTS_MAX);
    }
    struct send_message *message = add_message(c, buffer, bytes);
    message->request = request;
    message->memory = known;
    if (message->error) {
        sender_end_message(c, message, -message->error, SEND_OVER, now);
        sender_retire(c);
    }
    c->touched = true;
    *out = request;
    return 0;
}

int lh_send(struct lh_connection *connection, const void *buffer, size_t bytes, struct lh_memory *memory,
            struct lh_request **request)
{
    pthread_mutex_lock(&connection->requests->lock);
    int error = send_locked(connection, buffer, bytes, memory, request);
    pthread_mutex_unlock(&connection->requests->lock);
    if (!error)
        sdr_qp_driver_kick(connection->qp);
    return error;
}

static void finish_message(struct lh_connection *c, struct send_message *message, int error,
                           enum send_state state, lh_time now)
{
    assert(message->state == SEND_OPEN);
    message_memory_put(&message->memory);
    message->state = state;
    request_finish(message->request, error, message->bytes, now);
    message->request = NULL;
    if (error)
        c->stats.messages_failed++;
    else
        c->stats.messages_sent++;
}

void sender_retire(struct lh_connection *c)
{
    struct sender *s = &c->sender;
    /* Bounded by the ring. */
    while (s->oldest != s->next && send_message_at(c, s->oldest)->state == SEND_OVER) {
        *send_message_at(c, s->oldest) = (struct send_message){0};
        s->oldest++;
    }
    if (number_before(s->current, s->oldest))
        s->current = s->oldest;
}

/* ---- segments ---------------------------------------------------------------------------------------- */

static void end_segment(struct lh_connection *c, struct send_segment *segment)
{
    assert(segment->active);
    injector_end_segment(c, segment);
    segment->active = false;
    /* Bounded by the ring. */
    while (c->sender.segment_oldest != c->sender.segment_next &&
           !send_segment_at(c, c->sender.segment_oldest)->active)
        c->sender.segment_oldest++;
}

void sender_end_message(struct lh_connection *c, struct send_message *message, int error,
                        enum send_state state, lh_time now)
{
    struct sender *s = &c->sender;
    for (uint32_t n = s->segment_oldest; n != s->segment_next; n++) { /* at most attr.slots */
        struct send_segment *segment = send_segment_at(c, n);
        if (segment->active && segment->message == message->number)
            end_segment(c, segment);
    }
    finish_message(c, message, error, state, now);
}

void sender_end_all(struct lh_connection *c, int error, lh_time now)
{
    for (uint32_t n = c->sender.oldest; n != c->sender.next; n++) { /* at most MESSAGES_MAX */
        struct send_message *message = send_message_at(c, n);
        if (message->state == SEND_OPEN)
            sender_end_message(c, message, error, SEND_OVER, now);
    }
}

static void on_segment_done(struct lh_connection *c, struct send_segment *segment, lh_time now)
{
    struct send_message *message = send_message_at(c, segment->message);
    assert(message->state == SEND_OPEN && message->number == segment->message);
    end_segment(c, segment);
    message->done++;
    if (message->done == message->segments)
        finish_message(c, message, 0, SEND_OVER, now);
}

static bool is_done(const struct transfer_message *told, uint32_t sequence)
{
    uint32_t above = sequence - told->body.done.below;
    if (sequence == told->body.done.segment || number_before(sequence, told->body.done.below))
        return true;
    return above < TRANSFER_DONE_BITS && (told->body.done.bitmap >> above & 1) != 0;
}

void sender_on_done(struct lh_connection *c, const struct transfer_message *message, lh_time now)
{
    for (uint32_t n = c->sender.segment_oldest; n != c->sender.segment_next; n++) { /* at most attr.slots */
        struct send_segment *segment = send_segment_at(c, n);
        if (segment->active && is_done(message, n))
            on_segment_done(c, segment, now);
    }
    sender_retire(c);
}

void sender_on_to_sender(struct lh_connection *c, const struct transfer_message *message, lh_time now)
{
    struct send_segment *segment = send_segment_at(c, message->body.to_sender.segment);
    if (!segment->active || segment->sequence != message->body.to_sender.segment || !segment->scheme)
        return; /* late: it has ended */
    struct lh_sender_view view = {.now = now, .path = injector_path_view(c, now)};
    segment->scheme->sender_on_message(segment->machine, message->body.to_sender.scheme,
                                       message->body.to_sender.scheme_bytes, &view);
    segment->touched = true;
}

/* ---- clear-to-sends ---------------------------------------------------------------------------------- */

static void pass_by(struct lh_connection *c)
{
    lh_sdr_cts_skip(c->qp);
    c->sender.segment_next++;
    if (c->sender.segment_oldest + 1 == c->sender.segment_next)
        c->sender.segment_oldest++;
}

/* The first clear-to-send of a message decides how it is cut, for the code decides what fits a segment. */
static void cut_message(struct send_message *message, uint64_t segment_bytes)
{
    assert(segment_bytes > 0 && message->started == 0);
    message->segment_bytes = segment_bytes;
    if (message->bytes > 0)
        message->segments = (uint32_t)((message->bytes + segment_bytes - 1) / segment_bytes);
}

/* The segment of a clear-to-send that was checked; NULL when the SDR layer has no place for it now. */
static struct send_segment *take_segment(struct lh_connection *c, struct send_message *message,
                                         const struct lh_scheme *scheme)
{
    struct send_segment *segment = send_segment_at(c, c->sender.segment_next);
    struct sdr_send_handle *handle = NULL;
    struct sdr_send_start_wr wr = {.opcode = SDR_WR_WRITE};
    if (!scheme)
        lh_sdr_cts_skip(c->qp);
    else if (sdr_streaming_send_start(c->qp, &wr, &handle) != SDR_SUCCESS)
        return NULL;
    uint64_t offset = message->started * message->segment_bytes;
    uint64_t left = message->bytes - offset;
    uint32_t bytes = (uint32_t)(left < message->segment_bytes ? left : message->segment_bytes);
    *segment = (struct send_segment){
        .active = true,
        .touched = true,
        .sequence = c->sender.segment_next++,
        .message = message->number,
        .scheme = scheme,
        .handle = handle,
        .machine = segment->machine,
        .payload = bytes ? message->buffer + offset : NULL,
        .bytes = bytes,
        .chunks = (bytes + c->attr.chunk_bytes - 1) / c->attr.chunk_bytes,
        .lkey = message->memory.lkey,
        .next_ns = LH_TIME_NEVER,
    };
    return segment;
}

/* Memory for the parity of a segment, none when it needs none. False when there is no memory: segments in
 * flight will give theirs back, and where there are none the message ends. */
static bool take_parity(struct lh_connection *c, struct send_message *message,
                        const struct lh_scheme_coding *ops, const struct transfer_cts *cts,
                        struct parity_buffer **buffer)
{
    uint32_t chunks_max = (uint32_t)(message->segment_bytes / c->attr.chunk_bytes);
    size_t bytes = (size_t)ops->extra_chunks(cts->params, chunks_max) * c->attr.chunk_bytes;
    *buffer = bytes > 0 ? parity_take(c, bytes, 0) : NULL;
    if (*buffer || bytes == 0)
        return true;
    if (c->parity_in_use == 0)
        verdict_cancel(c, message, LH_ENOMEM, lh_sdr_now(c->context));
    return false;
}

static void start_coding(const struct lh_connection *c, struct send_segment *segment,
                         const struct transfer_cts *cts, struct parity_buffer *buffer)
{
    struct coded_send *coded = &segment->coded;
    coded->buffer = buffer;
    coded->extra_chunks = segment->scheme->coding->extra_chunks(cts->params, segment->chunks);
    coded->coding = (struct lh_coding){
        .chunks = segment->chunks,
        .chunk_bytes = c->attr.chunk_bytes,
        .bytes = segment->bytes,
        .message = segment->payload,
        .extra = buffer->chunks,
    };
    memcpy(coded->coding.params, cts->params, sizeof coded->coding.params);
}

static void start_segment(struct lh_connection *c, struct send_message *message,
                          const struct transfer_cts *cts, lh_time now)
{
    bool fits = message->bytes <= cts->room;
    const struct lh_scheme *scheme = scheme_find(c->attr.scheme, cts->scheme);
    const struct lh_scheme *used = fits && message->bytes > 0 ? scheme : NULL;
    struct parity_buffer *buffer = NULL;
    if (used && used->coding && !take_parity(c, message, used->coding, cts, &buffer))
        return;
    struct send_segment *segment = take_segment(c, message, used);
    if (!segment) {
        if (buffer)
            parity_give(c, buffer);
        return;
    }
    /* Of one that is too long only the lengths are told: the receiver refuses it. */
    message->started = fits ? message->started + 1 : message->segments;
    if (!message->injected)
        message->request->result.started_ns = now;
    message->injected = true;
    tell_lengths(c, segment, now);
    if (!segment->scheme)
        return;
    if (buffer)
        start_coding(c, segment, cts, buffer);
    struct lh_transfer transfer = {
        .chunks = segment->chunks, .chunk_bytes = c->attr.chunk_bytes, .stats = &c->stats};
    memcpy(transfer.params, cts->params, sizeof transfer.params);
    scheme->sender_start(segment->machine, &transfer, now);
    injector_run(c, segment, now);
}

/* 0: not even one group of chunks and its parity fits; or the scheme is not known. */
static uint64_t segment_bytes_of(const struct lh_connection *c, const struct lh_scheme *scheme,
                                 const struct transfer_cts *cts)
{
    struct scheme_choice choice = {.scheme = scheme};
    if (!scheme || !scheme->params_valid(cts->params))
        return 0;
    memcpy(choice.params, cts->params, sizeof choice.params);
    return scheme_segment_bytes(&choice, &c->attr);
}

/* Whether the peer may ask for this. Ends the connection when it may not. */
static bool check_cts(struct lh_connection *c, const struct send_message *message, const struct lh_cts *raw,
                      const struct transfer_cts *cts)
{
    const struct lh_scheme *scheme = scheme_find(c->attr.scheme, cts->scheme);
    uint64_t segment_bytes = segment_bytes_of(c, scheme, cts);
    uint64_t left = message->bytes - message->started * segment_bytes;
    uint64_t bytes = left < segment_bytes ? left : segment_bytes;
    char words[CONNECTION_TEXT_MAX];
    if (!scheme)
        snprintf(words, sizeof words, "peer wants reliability scheme %u, which this side does not know",
                 cts->scheme);
    else if (!scheme->params_valid(cts->params))
        snprintf(words, sizeof words, "peer wants %s with impossible parameters", scheme->name);
    else if (segment_bytes == 0)
        snprintf(words, sizeof words, "peer wants %s with parity that does not fit a slot", scheme->name);
    else if (message->bytes / segment_bytes >= INT32_MAX)
        snprintf(words, sizeof words, "peer cut message %u into more than %d segments", cts->message,
                 INT32_MAX);
    else if (message->started > 0 && segment_bytes != message->segment_bytes)
        snprintf(words, sizeof words, "peer cut message %u into other segments half way", cts->message);
    else if (cts->segment != message->started)
        snprintf(words, sizeof words, "peer cleared segment %u of message %u, and %u is next", cts->segment,
                 cts->message, message->started);
    else if (message->bytes <= cts->room && raw->length_bytes < bytes)
        snprintf(words, sizeof words, "peer cleared %u bytes for a segment of %llu", raw->length_bytes,
                 (unsigned long long)bytes);
    else
        return true;
    connection_fail(c, LH_EPROTOCOL, words);
    return false;
}

static void start_message_segment(struct lh_connection *c, struct send_message *message,
                                  const struct transfer_cts *cts, lh_time now)
{
    if (message->started == 0)
        cut_message(message, segment_bytes_of(c, scheme_find(c->attr.scheme, cts->scheme), cts));
    start_segment(c, message, cts, now);
}

/* False when the SDR layer has no place for it now. */
static bool open_parity(struct lh_connection *c, struct send_segment *segment, const struct lh_cts *raw)
{
    struct sdr_send_start_wr wr = {.opcode = SDR_WR_WRITE};
    if (raw->length_bytes < (uint64_t)segment->coded.extra_chunks * c->attr.chunk_bytes) {
        connection_fail(c, LH_EPROTOCOL, "peer cleared less than the parity of a segment to be sent");
        return false;
    }
    if (sdr_streaming_send_start(c->qp, &wr, &segment->coded.handle) != SDR_SUCCESS)
        return false;
    c->sender.segment_next++;
    segment->touched = true;
    return true;
}

/* Clear-to-sends of parity belong to the segment right before them, unless that is over. Whether there were
 * any. */
static bool use_parity_cts(struct lh_connection *c)
{
    struct sender *s = &c->sender;
    bool any = false;
    /* Each turn takes a place of the ring. */
    while (s->segment_next - s->segment_oldest < c->attr.slots && s->ending_count < c->attr.slots) {
        struct lh_cts raw;
        struct transfer_cts cts;
        if (lh_sdr_cts_peek(c->qp, &raw) != 0 || transfer_cts_decode(raw.upper, &cts) != 0 || !cts.extra)
            return any;
        uint32_t before = s->segment_next - 1;
        struct send_segment *segment = send_segment_at(c, before);
        bool lives = segment->active && segment->sequence == before && segment->message == cts.message;
        if (!lives || segment->coded.extra_chunks == 0)
            pass_by(c);
        else if (!open_parity(c, segment, &raw))
            return any;
        any = true;
    }
    return any;
}

/* The message whose segments are started next, or NULL. */
static struct send_message *current_message(struct lh_connection *c)
{
    struct sender *s = &c->sender;
    for (; s->current != s->next; s->current++) { /* at most MESSAGES_MAX */
        struct send_message *message = send_message_at(c, s->current);
        if (message->state == SEND_OPEN && message->started < message->segments)
            return message;
    }
    return NULL;
}

/* Uses one clear-to-send. False when there is none for now. */
static bool use_cts(struct lh_connection *c, struct send_message *message, lh_time now)
{
    struct lh_cts raw;
    struct transfer_cts cts;
    uint32_t before = c->sender.segment_next;
    if (lh_sdr_cts_peek(c->qp, &raw) != 0) {
        c->sender.cts_wanted = true;
        return false;
    }
    assert(raw.sequence == before);
    if (transfer_cts_decode(raw.upper, &cts) != 0) {
        connection_fail(c, LH_EPROTOCOL, "peer sent a clear-to-send that cannot be");
        return false;
    }
    if (cts.extra) { /* use_parity_cts() had no place for it, and tries again */
        c->sender.cts_wanted = true;
        return false;
    }
    if (number_before(cts.message, message->number))
        pass_by(c);
    else if (cts.message == message->number && check_cts(c, message, &raw, &cts))
        start_message_segment(c, message, &cts, now);
    return c->error == 0 && c->sender.segment_next != before;
}

/* Of the newest clear-to-send, unless it was passed by. */
static void note_started(struct lh_connection *c, lh_time *next)
{
    struct send_segment *segment = send_segment_at(c, c->sender.segment_next - 1);
    if (!segment->active || segment->sequence != c->sender.segment_next - 1)
        return;
    c->sender.closed |= segment->hungry;
    lh_keep_earlier(next, segment->next_ns);
    lh_keep_earlier(next, segment->tell_at);
}

static void start_segments(struct lh_connection *c, lh_time now, lh_time *next)
{
    struct sender *s = &c->sender;
    struct send_message *message;
    for (uint32_t i = 0; c->error == 0 && !s->blocked && (message = current_message(c)) != NULL; i++) {
        /* The oldest must arrive first: its place is wanted. And what was aborted must leave the queue. */
        if (s->segment_next - s->segment_oldest == c->attr.slots || s->ending_count >= c->attr.slots)
            return;
        if (i == STARTS_A_STEP) {
            c->touched = true;
            lh_keep_earlier(next, now);
            return;
        }
        s->closed |= injector_budget_chunks(c) == 0;
        if (s->closed || !use_cts(c, message, now))
            return;
        note_started(c, next);
        if (use_parity_cts(c)) {
            c->touched = true;
            lh_keep_earlier(next, now);
        }
    }
}

/* ---- the step ---------------------------------------------------------------------------------------- */

/* On a short path we must not overrun the receiver's socket buffer; on a long one the link itself holds
 * bytes. */
static uint64_t window_now(const struct lh_connection *c)
{
    uint64_t buffer = c->path.peer_receive_buffer_bytes / 2;
    if (buffer == 0)
        return c->attr.window_bytes;
    double link = (double)c->path.rtt_minimum_ns / (double)LH_NS_PER_S * (LONG_LINK_BPS / BITS_PER_BYTE);
    uint64_t bound = link > (double)buffer ? (uint64_t)link : buffer;
    return bound < c->attr.window_bytes ? bound : c->attr.window_bytes;
}

static void step_segment(struct lh_connection *c, struct send_segment *segment, lh_time now, lh_time *next)
{
    struct sender *s = &c->sender;
    bool fed = segment->hungry && injector_budget_chunks(c) > 0;
    if (segment->scheme && !s->blocked && (segment->touched || fed || segment->next_ns <= now))
        injector_run(c, segment, now);
    if (!segment->active)
        return;
    if (segment->tell_at <= now)
        tell_lengths(c, segment, now);
    s->closed |= segment->hungry;
    s->cts_wanted |= segment->coded.extra_chunks > 0 && !segment->coded.handle;
    if (!s->blocked) /* else it runs when the injection queue has room, which sender_has_work() sees */
        lh_keep_earlier(next, segment->next_ns);
    lh_keep_earlier(next, segment->tell_at);
}

bool sender_has_work(struct lh_connection *c)
{
    const struct sender *s = &c->sender;
    struct lh_cts cts;
    if (s->held_tail != s->held_head || s->ending_count > 0 || (s->starved && injector_has_room(c)))
        return true;
    return s->cts_wanted && lh_sdr_cts_peek(c->qp, &cts) == 0;
}

void sender_step(struct lh_connection *c, lh_time now, lh_time *next)
{
    struct sender *s = &c->sender;
    s->window_bytes = window_now(c);
    s->cts_wanted = false;
    injector_resume(c, now);
    use_parity_cts(c);
    /* Strictly in order: receivers conclude from a chunk of one segment that all before it were sent whole.
     */
    s->closed = s->blocked != NULL;
    for (uint32_t n = s->segment_oldest; c->error == 0 && n != s->segment_next;
         n++) { /* at most attr.slots */
        struct send_segment *segment = send_segment_at(c, n);
        if (segment->active)
            step_segment(c, segment, now, next);
    }
    start_segments(c, now, next);
    s->starved = s->closed || s->blocked;
    sender_retire(c);
}
