/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "connection/arrivals.h"

#include <assert.h>
#include <string.h>

#include "connection/auto_scheme.h"
#include "connection/number.h"
#include "connection/receiver.h"
#include "connection/tell.h"
#include "connection/verdict.h"
#include "sdr/driver.h"

#define ROUNDS_MAX 64u /* of a machine whose list was full, in one step */

static uint32_t chunks_of(const struct lh_connection *c, const struct recv_segment *segment)
{
    return (segment->bytes + c->attr.chunk_bytes - 1) / c->attr.chunk_bytes;
}

static bool length_known(struct lh_connection *c, const struct recv_segment *segment)
{
    return recv_message_at(c, segment->message)->bytes != MESSAGE_BYTES_UNKNOWN;
}

static struct lh_receiver_view view_of(struct lh_connection *c, const struct recv_segment *segment,
                                       lh_time now)
{
    return (struct lh_receiver_view){
        .now = now,
        .path = connection_path_view(c),
        .chunk_bitmap = segment->bitmap,
        .chunks_arrived = segment->arrived,
        .extra_bitmap = segment->coded.bitmap,
        .extra_arrived = segment->coded.arrived,
        .last_arrival_ns = segment->last_arrival_ns,
        .later_seen_ns = segment->later_seen_ns,
        .caught_up_ns = c->caught_up_ns,
        .length_known = length_known(c, segment),
        .chunks = chunks_of(c, segment),
    };
}

void arrivals_start(struct lh_connection *c, struct recv_segment *segment,
                    const uint8_t params[LH_SCHEME_PARAMS], lh_time now)
{
    if (segment->bytes == 0)
        return; /* nothing can arrive: it is done when the length is known */
    struct lh_transfer transfer = {
        .chunks = chunks_of(c, segment), .chunk_bytes = c->attr.chunk_bytes, .stats = &c->stats};
    memcpy(transfer.params, params, sizeof transfer.params);
    segment->scheme->receiver_start(segment->machine, &transfer, now);
}

void arrivals_note_seen(struct lh_connection *c, uint32_t sequence, lh_time now)
{
    struct receiver *r = &c->receiver;
    if (!number_before(r->newest_seen, sequence))
        return;
    uint32_t from = number_before(r->newest_seen, r->segment_oldest) ? r->segment_oldest : r->newest_seen;
    for (uint32_t n = from; n != sequence && number_before(n, sequence); n++) { /* at most attr.slots */
        struct recv_segment *segment = recv_segment_at(c, n);
        if (segment->state == SEGMENT_OPEN && segment->later_seen_ns == LH_TIME_NEVER) {
            segment->later_seen_ns = now;
            segment->touched = true;
        }
    }
    r->newest_seen = sequence;
}

/* While a message is cut, fewer may show for a moment. */
static uint32_t gained(uint32_t before, uint32_t now)
{
    return now > before ? now - before : 0;
}

bool arrivals_look(struct lh_connection *c, lh_time now)
{
    struct receiver *r = &c->receiver;
    bool any = false;
    uint32_t fresh = 0;
    c->caught_up_ns = sdr_qp_caught_up(c->qp); /* before the bitmaps are read, for it speaks of them */
    for (uint32_t n = r->segment_oldest; n != r->segment_next; n++) { /* at most attr.slots */
        struct recv_segment *segment = recv_segment_at(c, n);
        if (segment->state != SEGMENT_OPEN)
            continue;
        struct coded_recv *coded = &segment->coded;
        uint32_t arrived = lh_sdr_recv_chunks_arrived(segment->handle);
        uint32_t extra = coded->handle ? lh_sdr_recv_chunks_arrived(coded->handle) : 0;
        bool changed = arrived != segment->arrived || extra != coded->arrived;
        fresh += gained(segment->arrived, arrived) + gained(coded->arrived, extra);
        segment->arrived = arrived;
        coded->arrived = extra;
        auto_scheme_look(c, segment, changed, now);
        if (!changed)
            continue;
        segment->last_arrival_ns = now;
        segment->touched = true;
        arrivals_note_seen(c, n, now);
        any = true;
    }
    auto_scheme_looked(c, fresh, now);
    return any;
}

void arrivals_on_scheme(struct lh_connection *c, struct recv_segment *segment, const uint8_t *data,
                        uint32_t bytes, lh_time now)
{
    if (segment->posted_bytes == 0)
        return; /* it has no machine */
    struct lh_receiver_view view = view_of(c, segment, now);
    segment->scheme->receiver_on_message(segment->machine, data, bytes, &view);
    segment->touched = true;
}

static void carry_out(struct lh_connection *c, struct recv_segment *segment, const struct lh_action *action,
                      lh_time now)
{
    switch (action->kind) {
    case LH_ACTION_SEND_MESSAGE:
        assert(action->what.message.bytes > 0 && action->what.message.bytes <= LH_SCHEME_MESSAGE_MAX);
        tell_sender(c, segment, action->what.message.data, action->what.message.bytes);
        return;
    case LH_ACTION_COMPLETE:
        assert(length_known(c, segment));
        receiver_segment_done(c, segment,
                              !segment->scheme->coding || segment->arrived == chunks_of(c, segment), now);
        return;
    case LH_ACTION_FAIL:
        verdict_refuse(c, recv_message_at(c, segment->message), (enum lh_error)action->what.error, now);
        return;
    case LH_ACTION_SEND_CHUNKS:
    case LH_ACTION_ENCODE:
        break;
    }
    assert(false); /* only a sender sends chunks */
}

static void run_machine(struct lh_connection *c, struct recv_segment *segment, lh_time now)
{
    struct lh_actions *actions = &c->receiver.actions;
    segment->touched = true;
    for (uint32_t round = 0; round < ROUNDS_MAX && segment->touched; round++) {
        struct lh_receiver_view view = view_of(c, segment, now);
        actions->count = 0;
        actions->next_ns = LH_TIME_NEVER;
        segment->scheme->receiver_step(segment->machine, &view, actions);
        assert(actions->count <= LH_ACTIONS_MAX);
        segment->next_ns = actions->next_ns;
        segment->touched = actions->count == LH_ACTIONS_MAX;
        for (uint32_t i = 0; i < actions->count && segment->state == SEGMENT_OPEN; i++)
            carry_out(c, segment, &actions->list[i], now);
        if (segment->state != SEGMENT_OPEN)
            return;
    }
}

static void step_segment(struct lh_connection *c, struct recv_segment *segment, lh_time now)
{
    if (chunks_of(c, segment) > 0)
        run_machine(c, segment, now);
    else if (length_known(c, segment))
        receiver_segment_done(c, segment, true, now);
    else
        segment->touched = false;
}

void arrivals_step(struct lh_connection *c, lh_time now, lh_time *next)
{
    struct receiver *r = &c->receiver;
    lh_time expired = 0;                                              /* the newest timer that did */
    for (uint32_t n = r->segment_oldest; n != r->segment_next; n++) { /* at most attr.slots */
        struct recv_segment *segment = recv_segment_at(c, n);
        if (segment->state == SEGMENT_OPEN && segment->next_ns <= now && segment->next_ns > expired)
            expired = segment->next_ns;
        if (segment->state == SEGMENT_OPEN && (segment->touched || segment->next_ns <= now))
            step_segment(c, segment, now);
        if (segment->state == SEGMENT_OPEN)
            lh_keep_earlier(next, segment->next_ns);
        if (segment->state == SEGMENT_OPEN && c->automatic)
            lh_keep_earlier(next, segment->watch.mark_at);
    }
    /* A machine may wait for what other workers still have to look at, and those may be asleep. */
    if (c->caught_up_ns < expired)
        sdr_qp_catch_up(c->qp, expired);
}
