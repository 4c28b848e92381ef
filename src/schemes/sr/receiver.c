/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/receiver.h"

#include <assert.h>
#include <string.h>

#include "schemes/sr/ack_pace.h"
#include "schemes/sr/arrivals.h"
#include "schemes/sr/nack.h"
#include "schemes/sr/sender.h"
#include "wire/selective_repeat.h"

/* What is to be said next. */
enum sr_answer {
    SR_ANSWER_NONE,
    SR_ANSWER_ACK,
    SR_ANSWER_NACK,
};

struct sr_receiver {
    struct sr_arrivals arrivals; /* its bits follow this struct */
    struct lh_stats *stats;
    bool nack_scheme;
    bool asked;    /* by a probe, since the last answer */
    bool complete; /* was said */
    struct sr_ack_pace pace;
    /* The answer that is being written: words next_word … end_word - 1 are still to be told. */
    enum sr_answer writing;
    uint32_t next_word;
    uint32_t end_word;
    struct sr_nack nack; /* sr-nack only; else its horizon stays 0 */
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
    receiver->writing = SR_ANSWER_NONE;
    receiver->next_word = 0;
    receiver->end_word = 0;
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

/* An answer tells all from the first missing chunk to the highest that arrived or is known to be lost. */
static void begin_answer(struct sr_receiver *receiver, enum sr_answer answer, lh_time now)
{
    const struct sr_arrivals *arrivals = &receiver->arrivals;
    uint32_t horizon = receiver->nack.horizon;
    uint32_t end = arrivals->highest > horizon ? arrivals->highest : horizon;
    receiver->writing = answer;
    receiver->next_word = arrivals->cumulative / 64;
    receiver->end_word = (end + 63) / 64;
    receiver->asked = false;
    sr_ack_pace_on_ack(&receiver->pace, now);
}

static void write_ack(struct sr_receiver *receiver, struct lh_action *action)
{
    const struct sr_arrivals *arrivals = &receiver->arrivals;
    /* The first missing chunk may have come since the answer was begun. */
    if (receiver->next_word < arrivals->cumulative / 64)
        receiver->next_word = arrivals->cumulative / 64;
    uint32_t left = receiver->end_word > receiver->next_word ? receiver->end_word - receiver->next_word : 0;
    struct sr_ack ack = {
        .flags = receiver->writing == SR_ANSWER_NACK ? SR_FLAG_NACK : 0,
        .mark = receiver->nack.mark,
        .cumulative = arrivals->cumulative,
        .base = receiver->next_word * 64,
        .horizon = receiver->nack.horizon,
        .arrived = arrivals->seen,
        .words = (uint16_t)(left < SR_ACK_WORDS_MAX ? left : SR_ACK_WORDS_MAX),
    };
    memcpy(ack.bitmap, arrivals->bits + receiver->next_word, ack.words * sizeof(uint64_t));
    action->what.message.bytes = (uint32_t)sr_ack_encode(&ack, action->what.message.data);
    receiver->next_word += ack.words;
    sr_count(ack.flags & SR_FLAG_NACK ? &receiver->stats->nacks_sent : &receiver->stats->acks_sent);
}

/* As far as the list has room: at most LH_ACTIONS_MAX messages. */
static void write_answer(struct sr_receiver *receiver, struct lh_actions *actions)
{
    while (receiver->writing != SR_ANSWER_NONE) {
        struct lh_action *action = lh_action_add(actions, LH_ACTION_SEND_MESSAGE);
        if (action == NULL)
            return;
        write_ack(receiver, action);
        if (receiver->next_word >= receiver->end_word)
            receiver->writing = SR_ANSWER_NONE;
    }
}

static enum sr_answer answer_due(struct sr_receiver *receiver, const struct lh_receiver_view *view,
                                 const struct sr_timing *timing)
{
    const struct sr_arrivals *arrivals = &receiver->arrivals;
    if (receiver->nack_scheme && sr_nack_on_step(&receiver->nack, arrivals, view, timing))
        return SR_ANSWER_NACK;
    if (receiver->asked)
        return arrivals->cumulative < receiver->nack.horizon ? SR_ANSWER_NACK : SR_ANSWER_ACK;
    return sr_ack_pace_expiry(&receiver->pace, arrivals->limit, timing) <= view->now ? SR_ANSWER_ACK
                                                                                     : SR_ANSWER_NONE;
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
    if (receiver->writing == SR_ANSWER_NONE) {
        enum sr_answer answer = answer_due(receiver, view, &timing);
        if (answer != SR_ANSWER_NONE)
            begin_answer(receiver, answer, view->now);
        write_answer(receiver, actions);
    }
    actions->next_ns = next_expiry(receiver, view, &timing);
}
