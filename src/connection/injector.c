/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "connection/injector.h"

#include <assert.h>

#include "base/error.h"
#include "connection/tell.h"
#include "connection/verdict.h"

#define QUEUE_BYTES                                                                                        \
    ((uint64_t)512                                                                                         \
     << 10)              /* waiting in the SDR layer and the fabric: 40 us at 100 Gbit/s                  \
                           */
#define QUEUE_CHUNKS 2u  /* or so many, when they are larger */
#define ROUNDS_MAX   64u /* of a machine whose list was full, in one step */

static uint64_t queue_limit(const struct lh_connection *c)
{
    uint64_t chunks = (uint64_t)QUEUE_CHUNKS * c->attr.chunk_bytes;
    return chunks > QUEUE_BYTES ? chunks : QUEUE_BYTES;
}

static uint64_t room_of(uint64_t limit, uint64_t used)
{
    return used < limit ? limit - used : 0;
}

static void note_left(struct lh_connection *c, lh_time now)
{
    uint64_t left = c->sender.posted_bytes - lh_sdr_send_queued_bytes(c->qp);
    lh_time left_ns = lh_sdr_send_left_ns(c->qp);
    queue_delay_on_left(&c->sender.delay, left, lh_earlier(left_ns, now));
}

struct lh_path_view injector_path_view(struct lh_connection *c, lh_time now)
{
    struct lh_path_view view = connection_path_view(c);
    note_left(c, now);
    if (view.rtt_ns == 0)
        return view;
    view.overdue_ns += queue_delay_now(&c->sender.delay, now);
    return view;
}

uint32_t injector_budget_chunks(const struct lh_connection *c)
{
    uint64_t queued = lh_sdr_send_queued_bytes(c->qp);
    uint64_t in_flight = c->sender.in_flight_bytes;
    if (queued == 0 && in_flight == 0 && c->sender.window_bytes < c->attr.chunk_bytes)
        return 1; /* or nothing would ever move */
    uint64_t queue_room = room_of(queue_limit(c), queued);
    uint64_t window_room = room_of(c->sender.window_bytes, in_flight);
    return (uint32_t)((queue_room < window_room ? queue_room : window_room) / c->attr.chunk_bytes);
}

bool injector_has_room(const struct lh_connection *c)
{
    uint64_t limit = queue_limit(c);
    return injector_budget_chunks(c) > 0 && room_of(limit, lh_sdr_send_queued_bytes(c->qp)) >= limit / 2;
}

static void count_again(struct lh_connection *c, uint32_t bytes)
{
    c->stats.tx_retransmitted_bytes += bytes;
    c->stats.tx_retransmitted_packets += (bytes + c->attr.mtu_bytes - 1) / c->attr.mtu_bytes;
}

/* Where chunks lie, here and there: in the message, or past its end among the extra ones. */
struct place {
    struct sdr_send_handle *handle;
    struct sdr_send_continue_wr wr;
};

static struct place place_of(const struct lh_connection *c, const struct send_segment *segment,
                             uint32_t first, uint32_t count)
{
    bool extra = first >= segment->chunks;
    uint32_t from = extra ? first - segment->chunks : first;
    uint32_t chunks = extra ? segment->coded.extra_chunks : segment->chunks;
    assert(count > 0 && from < chunks && count <= chunks - from);
    assert(!extra || segment->coded.handle);
    uint64_t offset = (uint64_t)from * c->attr.chunk_bytes;
    uint64_t wanted = (uint64_t)count * c->attr.chunk_bytes;
    uint64_t left = extra ? wanted : segment->bytes - offset;
    const uint8_t *bytes = extra ? segment->coded.buffer->chunks : segment->payload;
    return (struct place){
        .handle = extra ? segment->coded.handle : segment->handle,
        .wr =
            {
                .length = (uint32_t)(wanted < left ? wanted : left),
                .local_addr = (uint64_t)(uintptr_t)(bytes + offset),
                .lkey = extra ? segment->coded.buffer->lkey : segment->lkey,
                .remote_offset = from,
            },
    };
}

/* False when the queue is full. */
static bool inject(struct lh_connection *c, struct send_segment *segment, const struct lh_action *action,
                   lh_time now)
{
    struct place place = place_of(c, segment, action->what.chunks.first, action->what.chunks.count);
    uint32_t bytes = place.wr.length;
    int rc = sdr_streaming_send_continue(place.handle, &place.wr);
    if (rc == SDR_RETRY)
        return false;
    if (rc != SDR_SUCCESS) {
        /* The queue pair ended (the next step sees that), or the memory is not what it was. */
        if (lh_sdr_error(c->qp) == 0)
            verdict_cancel(c, send_message_at(c, segment->message), LH_EKEY, now);
        return true;
    }
    c->sender.posted_bytes += bytes;
    queue_delay_on_posted(&c->sender.delay, c->sender.posted_bytes, now);
    if (action->what.chunks.again)
        count_again(c, bytes);
    return true;
}

/* False when the queue is full. */
static bool carry_out_one(struct lh_connection *c, struct send_segment *segment,
                          const struct lh_action *action, lh_time now)
{
    switch (action->kind) {
    case LH_ACTION_SEND_CHUNKS:
        return inject(c, segment, action, now);
    case LH_ACTION_SEND_MESSAGE:
        assert(action->what.message.bytes <= LH_SCHEME_MESSAGE_MAX);
        tell_receiver(c, segment, action->what.message.data, action->what.message.bytes, now);
        return true;
    case LH_ACTION_FAIL:
        verdict_cancel(c, send_message_at(c, segment->message), (enum lh_error)action->what.error, now);
        return true;
    case LH_ACTION_ENCODE:
        assert(segment->coded.buffer);
        coder_encode(c, segment, action->what.encode.group, action->what.encode.first_row,
                     action->what.encode.rows);
        return true;
    case LH_ACTION_COMPLETE:
        break;
    }
    assert(false); /* only a receiver completes */
    return true;
}

/* The rest of the list. False when the queue is full: the list is kept then, and its segment blocks. */
static bool carry_out(struct lh_connection *c, struct send_segment *segment, lh_time now)
{
    struct sender *s = &c->sender;
    for (; s->actions_at < s->actions.count && segment->active; s->actions_at++)
        if (!carry_out_one(c, segment, &s->actions.list[s->actions_at], now)) {
            s->blocked = segment;
            return false;
        }
    return true;
}

static uint32_t chunks_of(const struct lh_actions *actions)
{
    uint32_t chunks = 0;
    for (uint32_t i = 0; i < actions->count; i++)
        if (actions->list[i].kind == LH_ACTION_SEND_CHUNKS)
            chunks += actions->list[i].what.chunks.count;
    return chunks;
}

static void note_in_flight(struct lh_connection *c, struct send_segment *segment, uint32_t chunks)
{
    c->sender.in_flight_bytes -= (uint64_t)segment->in_flight_chunks * c->attr.chunk_bytes;
    segment->in_flight_chunks = chunks;
    c->sender.in_flight_bytes += (uint64_t)chunks * c->attr.chunk_bytes;
}

void injector_run(struct lh_connection *c, struct send_segment *segment, lh_time now)
{
    struct lh_actions *actions = &c->sender.actions;
    assert(segment->scheme && !c->sender.blocked);
    for (uint32_t round = 0; round < ROUNDS_MAX && segment->active; round++) {
        struct lh_sender_view view = {.now = now, .path = injector_path_view(c, now)};
        view.budget_chunks = c->sender.closed ? 0 : injector_budget_chunks(c);
        view.extra_open = segment->coded.handle != NULL;
        view.encoded = segment->coded.encoded;
        actions->count = 0;
        actions->next_ns = LH_TIME_NEVER;
        actions->in_flight_chunks = 0;
        c->sender.actions_at = 0;
        segment->scheme->sender_step(segment->machine, &view, actions);
        assert(actions->count <= LH_ACTIONS_MAX && chunks_of(actions) <= view.budget_chunks);
        note_in_flight(c, segment, actions->in_flight_chunks);
        segment->next_ns = actions->next_ns;
        segment->hungry = chunks_of(actions) == view.budget_chunks;
        segment->touched = actions->count == LH_ACTIONS_MAX;
        if (!carry_out(c, segment, now) || !segment->touched)
            return;
    }
    segment->next_ns = now; /* not done yet, and others want their turn */
}

/* Gives back the sends that were aborted, as far as they have ended. */
static void collect_ended(struct lh_connection *c)
{
    struct sender *s = &c->sender;
    for (uint32_t i = 0; i < s->ending_count;) { /* at most 2 * attr.slots */
        int completed = 0;
        sdr_send_poll(s->ending[i].handle, &completed, NULL);
        if (!completed) {
            i++;
            continue;
        }
        if (s->ending[i].buffer)
            parity_give(c, s->ending[i].buffer);
        s->ending[i] = s->ending[--s->ending_count];
    }
}

void injector_resume(struct lh_connection *c, lh_time now)
{
    struct sender *s = &c->sender;
    note_left(c, now);
    collect_ended(c);
    tell_held(c);
    if (!s->blocked)
        return;
    struct send_segment *segment = s->blocked;
    s->blocked = NULL;
    if (carry_out(c, segment, now) && segment->active)
        segment->touched = true;
}

/* Ends a send, if there is one, and gives the buffer back that it sent from, if it is ours, when nothing
 * reads it any more. */
static void end_send(struct lh_connection *c, struct sdr_send_handle **handle, struct parity_buffer *buffer)
{
    struct sender *s = &c->sender;
    int completed = !*handle;
    if (*handle && sdr_streaming_send_end(*handle) == SDR_SUCCESS)
        sdr_send_poll(*handle, &completed, NULL);
    if (!completed) {
        /* What is still queued has arrived before, or is given up. */
        lh_sdr_streaming_send_abort(*handle);
        assert(s->ending_count < 2 * c->attr.slots);
        s->ending[s->ending_count++] = (struct ending_send){*handle, buffer};
    } else if (buffer) {
        parity_give(c, buffer);
    }
    *handle = NULL;
}

void injector_end_segment(struct lh_connection *c, struct send_segment *segment)
{
    if (c->sender.blocked == segment)
        c->sender.blocked = NULL;
    note_in_flight(c, segment, 0);
    coder_drop(c, segment);
    end_send(c, &segment->handle, NULL);
    end_send(c, &segment->coded.handle, segment->coded.buffer);
    segment->coded.buffer = NULL;
}

void injector_close(struct lh_connection *c)
{
    struct sender *s = &c->sender;
    for (; s->ending_count > 0; s->ending_count--) /* at most 2 * attr.slots */
        if (s->ending[s->ending_count - 1].buffer)
            parity_give(c, s->ending[s->ending_count - 1].buffer);
}
