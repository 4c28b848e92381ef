/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/rx/arrivals.h"

#include <assert.h>
#include <string.h>

#include "base/earlier.h"
#include "message/control/control_tx.h"
#include "message/control/number.h"
#include "message/control/timing.h"
#include "message/rx/auto_scheme.h"
#include "message/rx/decoding.h"
#include "message/rx/refuse.h"
#include "sdr/driver.h"

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

void arrivals_start(struct rx *rx, struct rx_segment *segment, const uint8_t params[LH_SCHEME_PARAMS],
                    lh_time now)
{
    if (segment->bytes == 0)
        return; /* nothing can arrive: it is done when the length is known */
    struct lh_transfer transfer = {
        .chunks = rx_segment_chunks(rx, segment), .chunk_bytes = rx->attr->chunk_bytes, .stats = rx->stats};
    memcpy(transfer.params, params, sizeof transfer.params);
    segment->scheme->receiver_start(segment->machine, &transfer, now);
}

void arrivals_note_seen(struct rx *rx, uint32_t sequence, lh_time now)
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
