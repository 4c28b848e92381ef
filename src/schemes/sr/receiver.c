/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/receiver.h"

#include <assert.h>

#include "schemes/sr/ack_pace.h"
#include "schemes/sr/answer.h"
#include "schemes/sr/sender.h"
#include "wire/selective_repeat.h"

struct sr_receiver {
    struct sr_arrivals arrivals; /* its bits follow this struct */
    struct lh_stats *stats;
    bool nack_scheme;
    bool asked;    /* by a probe, since the last answer */
    bool complete; /* was said */
    struct sr_ack_pace pace;
    struct sr_answer answer; /* that is being written */
    struct sr_nack nack;     /* sr-nack only; else its horizon stays 0 */
};

static_assert(sizeof(struct sr_receiver) % sizeof(uint64_t) == 0, "the bits follow, aligned");

size_t sr_receiver_bytes(uint32_t chunks_max)
{
    return sizeof(struct sr_receiver) + sr_arrivals_bytes(chunks_max);
}

static void receiver_start(void *state, const struct lh_transfer *transfer, bool nack_scheme, lh_time now)
{
    assert(transfer->chunks <= SR_CHUNKS_MAX);
    struct sr_receiver *receiver = state;
    receiver->stats = transfer->stats;
    receiver->nack_scheme = nack_scheme;
    receiver->asked = false;
    receiver->complete = false;
    sr_answer_init(&receiver->answer);
    sr_arrivals_init(&receiver->arrivals, transfer->chunks, receiver + 1);
    sr_ack_pace_init(&receiver->pace, nack_scheme, now);
    sr_nack_init(&receiver->nack);
}

void sr_rto_receiver_start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    receiver_start(state, transfer, false, now);
}

void sr_nack_receiver_start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    receiver_start(state, transfer, true, now);
}

static void on_mark(struct sr_receiver *receiver, const struct sr_mark *mark,
                    const struct lh_receiver_view *view)
{
    struct sr_timing timing = sr_timing_of(&view->path);
    if (mark->flags & SR_FLAG_PROBE)
        receiver->asked = true;
    if (receiver->nack_scheme)
        sr_nack_on_mark(&receiver->nack, mark->mark, mark->sent_through, &timing, view->now);
}

void sr_receiver_on_message(void *state, const uint8_t *data, size_t bytes,
                            const struct lh_receiver_view *view)
{
    struct sr_receiver *receiver = state;
    struct sr_mark mark;
    if (sr_mark_decode(data, bytes, &mark) != 0 || mark.sent_through > receiver->arrivals.capacity) {
        sr_count(&receiver->stats->bad_control);
        return;
    }
    on_mark(receiver, &mark, view);
}

/* ---- what is said next ------------------------------------------------------------------------------- */

static void begin_answer(struct sr_receiver *receiver, enum sr_answer_kind kind, lh_time now)
{
    sr_answer_begin(&receiver->answer, kind, &receiver->arrivals, &receiver->nack);
    receiver->asked = false;
    sr_ack_pace_on_ack(&receiver->pace, now);
}

static void write_answer(struct sr_receiver *receiver, struct lh_actions *actions)
{
    sr_answer_write(&receiver->answer, &receiver->arrivals, &receiver->nack, receiver->stats, actions);
}

static enum sr_answer_kind answer_due(struct sr_receiver *receiver, const struct lh_receiver_view *view,
                                      const struct sr_timing *timing)
{
    const struct sr_arrivals *arrivals = &receiver->arrivals;
    if (receiver->nack_scheme && sr_nack_on_step(&receiver->nack, arrivals, view, timing))
        return SR_ANSWER_NACK;
    if (receiver->asked)
        return arrivals->cumulative < receiver->nack.horizon ? SR_ANSWER_NACK : SR_ANSWER_ACK;
    bool paced = sr_ack_pace_expiry(&receiver->pace, arrivals->limit, timing) <= view->now;
    return paced ? SR_ANSWER_ACK : SR_ANSWER_NONE;
}

static lh_time next_expiry(const struct sr_receiver *receiver, const struct lh_receiver_view *view,
                           const struct sr_timing *timing)
{
    lh_time next = sr_ack_pace_expiry(&receiver->pace, receiver->arrivals.limit, timing);
    if (!receiver->nack_scheme)
        return next;
    return lh_earlier(next, sr_nack_expiry(&receiver->nack, &receiver->arrivals, view, timing));
}

/* Takes over what has changed in the bitmap. */
static void look(struct sr_receiver *receiver, const struct lh_receiver_view *view,
                 const struct sr_timing *timing)
{
    struct sr_arrivals *arrivals = &receiver->arrivals;
    sr_arrivals_limit(arrivals, view->chunks);
    uint32_t fresh = sr_arrivals_update(arrivals, view->chunk_bitmap, view->chunks_arrived);
    if (fresh == 0)
        return;
    sr_ack_pace_on_arrivals(&receiver->pace, fresh, view->now);
    if (receiver->nack_scheme)
        sr_nack_on_arrivals(&receiver->nack, arrivals, timing, view->now);
}

void sr_receiver_step(void *state, const struct lh_receiver_view *view, struct lh_actions *actions)
{
    struct sr_receiver *receiver = state;
    struct sr_timing timing = sr_timing_of(&view->path);
    look(receiver, view, &timing);
    bool whole = view->length_known && receiver->arrivals.seen == receiver->arrivals.limit;
    if (whole && !receiver->complete)
        receiver->complete = lh_action_add(actions, LH_ACTION_COMPLETE) != NULL;
    if (whole) { /* the connection tells the sender */
        actions->next_ns = LH_TIME_NEVER;
        return;
    }
    write_answer(receiver, actions); /* the rest of one that the list had no room for */
    if (receiver->answer.writing == SR_ANSWER_NONE) {
        enum sr_answer_kind kind = answer_due(receiver, view, &timing);
        if (kind != SR_ANSWER_NONE)
            begin_answer(receiver, kind, view->now);
        write_answer(receiver, actions);
    }
    actions->next_ns = next_expiry(receiver, view, &timing);
}
