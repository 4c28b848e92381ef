/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx/backlog.h"

#include <assert.h>

#include "base/earlier.h"
#include "base/least.h"
#include "sdr/driver.h"

void backlog_on_message(struct tx *tx, struct tx_message *message)
{
    message->unstarted_bytes = message->bytes;
    tx->unstarted_bytes += message->bytes;
}

static void take_unstarted(struct tx *tx, struct tx_message *message, uint64_t bytes)
{
    assert(bytes <= message->unstarted_bytes && bytes <= tx->unstarted_bytes);
    message->unstarted_bytes -= bytes;
    tx->unstarted_bytes -= bytes;
}

/* The segment that now has half of the slots behind it. That is news for a machine with parity only: another
 * one may not be stepped without an event. */
void backlog_on_place(struct tx *tx)
{
    uint32_t sequence = tx->segment_next - tx->attr->slots / 2 - 1;
    if (sequence - tx->segment_oldest >= tx->segment_next - tx->segment_oldest)
        return;
    struct tx_segment *segment = tx_segment_at(tx, sequence);
    segment->needs_step |= segment->active && segment->scheme && segment->scheme->coding;
}

void backlog_on_segment(struct tx *tx, struct tx_message *message, struct tx_segment *segment)
{
    take_unstarted(tx, message, lh_least(segment->bytes, message->unstarted_bytes));
    segment->unsent = segment->scheme ? segment->chunks : 0;
    tx->unsent_chunks += segment->unsent;
}

void backlog_on_segment_over(struct tx *tx, struct tx_segment *segment)
{
    assert(segment->unsent <= tx->unsent_chunks);
    tx->unsent_chunks -= segment->unsent;
    segment->unsent = 0;
}

void backlog_on_message_over(struct tx *tx, struct tx_message *message)
{
    take_unstarted(tx, message, message->unstarted_bytes);
}

void backlog_on_injected(struct tx *tx, struct tx_segment *segment, uint32_t end)
{
    uint32_t unsent = segment->chunks - end;
    assert(end <= segment->chunks);
    if (unsent >= segment->unsent)
        return;
    tx->unsent_chunks -= segment->unsent - unsent;
    segment->unsent = unsent;
}

/* A clear-to-send is there, and what it takes to follow it. */
static bool can_start(const struct tx *tx)
{
    struct lh_cts raw;
    struct transfer_cts cts;
    if (tx->unstarted_bytes == 0 || tx->start_waits ||
        tx->segment_next - tx->segment_oldest == tx->attr->slots || tx->ending_count >= tx->attr->slots)
        return false;
    return lh_sdr_cts_peek(tx->qp, &raw) == 0 && transfer_cts_decode(raw.upper, &cts) == 0 && !cts.extra;
}

void backlog_view(struct tx *tx, const struct tx_segment *segment, struct lh_sender_view *view)
{
    uint64_t others = tx->unsent_chunks - segment->unsent;
    uint64_t later = others + tx->unstarted_bytes / tx->attr->chunk_bytes;
    view->later_chunks = (uint32_t)lh_least(later, UINT32_MAX);
    view->flight_chunks = (uint32_t)lh_least(tx->in_flight_bytes / tx->attr->chunk_bytes, UINT32_MAX);
    if (!segment->scheme->coding)
        return;
    view->holds_up = tx->segment_next - segment->sequence > tx->attr->slots / 2;
    view->data_waits = others > 0 || can_start(tx);
    tx->parity_waits |= view->data_waits;
}

void backlog_release(struct tx *tx, lh_time now, lh_time *next)
{
    if (!tx->parity_waits || tx->unsent_chunks > 0 || can_start(tx))
        return;
    tx->parity_waits = false;
    for (uint32_t n = tx->segment_oldest; n != tx->segment_next; n++) { /* at most attr.slots */
        struct tx_segment *segment = tx_segment_at(tx, n);
        if (segment->active && segment->scheme && segment->scheme->coding)
            segment->needs_step = true;
    }
    lh_keep_earlier(next, now);
}
