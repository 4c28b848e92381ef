/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/rx/done.h"

#include "base/earlier.h"
#include "message/control/control_tx.h"
#include "message/control/number.h"
#include "message/control/timing.h"
#include "message/rx/messages.h"

#define REFRESHES 3u
/* Of a round trip: past a burst of losses; few messages wait for the next ones. */
#define FIRST_FRACTION   64u
#define REFRESH_FRACTION 8u

bool done_is(const struct rx *rx, const struct rx_segment *segment)
{
    return segment->state == SEGMENT_DONE && !(rx->placed_first && segment->coded.jobs > 0);
}

static uint64_t bitmap_of(const struct rx *rx)
{
    uint64_t bitmap = 0;
    for (uint32_t i = 0; i < TRANSFER_DONE_BITS && rx->segment_oldest + i != rx->segment_next; i++)
        if (done_is(rx, rx_segment_at(rx, rx->segment_oldest + i)))
            bitmap |= (uint64_t)1 << i;
    return bitmap;
}

static struct transfer_message message_of(struct rx *rx, uint32_t sequence)
{
    rx_retire(rx);
    struct transfer_message message = {.kind = TRANSFER_DONE};
    message.body.done.segment = sequence;
    message.body.done.below = rx->segment_oldest;
    message.body.done.bitmap = bitmap_of(rx);
    return message;
}

void done_answer(struct rx *rx, uint32_t sequence)
{
    struct transfer_message message = message_of(rx, sequence);
    control_tx_send(rx->qp, &message);
}

void done_note(struct rx *rx, uint32_t sequence)
{
    /* One DONE for all that arrived in a step, unless its bitmap does not reach that far. */
    uint32_t reach = rx->segment_oldest + TRANSFER_DONE_BITS;
    if (rx->done.wanted && !number_before(rx->done.segment, reach))
        done_answer(rx, rx->done.segment);
    rx->done.segment = sequence;
    rx->done.wanted = true;
    rx->done.any = true;
}

static lh_time interval(const struct rx *rx)
{
    uint32_t fraction = rx->done.refreshes_left == REFRESHES ? FIRST_FRACTION : REFRESH_FRACTION;
    return rx->path->rtt_ns ? rx->path->rtt_ns / fraction : timing_refresh_interval(rx->path, 0);
}

static void announce(struct rx *rx, lh_time now)
{
    done_answer(rx, rx->done.segment);
    rx->done.refresh_at = now + interval(rx);
}

static void on_refresh_expired(struct rx *rx, lh_time now)
{
    rx->done.refreshes_left--;
    announce(rx, now);
}

void done_step(struct rx *rx, lh_time now, lh_time *next)
{
    struct done_state *done = &rx->done;
    if (done->wanted) {
        done->wanted = false;
        done->refreshes_left = REFRESHES;
        announce(rx, now);
    } else if (done->refreshes_left > 0 && done->refresh_at <= now) {
        on_refresh_expired(rx, now);
    }
    if (done->refreshes_left > 0)
        lh_keep_earlier(next, done->refresh_at);
}

struct transfer_message done_last(struct rx *rx)
{
    /* Before the first arrival: one that is over, or was never sent. */
    return message_of(rx, rx->done.any ? rx->done.segment : rx->segment_oldest - 1);
}
