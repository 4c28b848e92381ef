/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "connection/sender.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "connection/clearing.h"
#include "connection/injector.h"
#include "connection/number.h"
#include "connection/tell.h"
#include "sdr/driver.h"

#define BITS_PER_BYTE     8u
#define LONG_LINK_BPS     100000000000u /* a link this fast is kept full, however long it is */
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
    clearing_use_parity(c);
    /* Strictly in order: receivers conclude from a chunk of one segment that all before it were sent whole.
     */
    s->closed = s->blocked != NULL;
    for (uint32_t n = s->segment_oldest; c->error == 0 && n != s->segment_next;
         n++) { /* at most attr.slots */
        struct send_segment *segment = send_segment_at(c, n);
        if (segment->active)
            step_segment(c, segment, now, next);
    }
    clearing_start_segments(c, now, next);
    s->starved = s->closed || s->blocked;
    sender_retire(c);
}
