/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "connection/done.h"

#include "connection/number.h"
#include "connection/receiver.h"
#include "connection/tell.h"

#define REPEATS 3u
#define FIRST_FRACTION                                                                                     \
    64u /* of a round trip: past a burst of losses; few messages wait for the next ones */
#define REPEAT_FRACTION 8u

static uint64_t bitmap_of(struct lh_connection *c)
{
    struct receiver *r = &c->receiver;
    uint64_t bitmap = 0;
    for (uint32_t i = 0; i < TRANSFER_DONE_BITS && r->segment_oldest + i != r->segment_next; i++)
        if (recv_segment_at(c, r->segment_oldest + i)->state == SEGMENT_DONE)
            bitmap |= (uint64_t)1 << i;
    return bitmap;
}

static struct transfer_message message_of(struct lh_connection *c, uint32_t sequence)
{
    receiver_retire(c);
    struct transfer_message message = {.kind = TRANSFER_DONE};
    message.body.done.segment = sequence;
    message.body.done.below = c->receiver.segment_oldest;
    message.body.done.bitmap = bitmap_of(c);
    return message;
}

void done_answer(struct lh_connection *c, uint32_t sequence)
{
    struct transfer_message message = message_of(c, sequence);
    tell(c, &message);
}

void done_note(struct lh_connection *c, uint32_t sequence)
{
    /* One DONE for all that arrived in a step, unless its bitmap does not reach that far. */
    uint32_t reach = c->receiver.segment_oldest + TRANSFER_DONE_BITS;
    if (c->done.wanted && !number_before(c->done.segment, reach))
        done_answer(c, c->done.segment);
    c->done.segment = sequence;
    c->done.wanted = true;
    c->done.any = true;
}

static lh_time repeat_span(const struct lh_connection *c)
{
    uint32_t fraction = c->done.repeats_left == REPEATS ? FIRST_FRACTION : REPEAT_FRACTION;
    return c->path.rtt_ns ? c->path.rtt_ns / fraction : connection_repeat_span(c, 0);
}

void done_step(struct lh_connection *c, lh_time now, lh_time *next)
{
    struct done_teller *done = &c->done;
    if (done->wanted) {
        done->wanted = false;
        done->repeats_left = REPEATS;
    } else if (done->repeats_left > 0 && done->repeat_at <= now) {
        done->repeats_left--;
    } else {
        if (done->repeats_left > 0)
            lh_keep_earlier(next, done->repeat_at);
        return;
    }
    done_answer(c, done->segment);
    done->repeat_at = now + repeat_span(c);
    if (done->repeats_left > 0)
        lh_keep_earlier(next, done->repeat_at);
}

struct transfer_message done_last(struct lh_connection *c)
{
    /* Before the first arrival: one that is over, or was never sent. */
    return message_of(c, c->done.any ? c->done.segment : c->receiver.segment_oldest - 1);
}
