/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid/receiver.h"

#include <assert.h>
#include <string.h>

#include "schemes/ec/needs.h"
#include "schemes/hybrid/coding.h"
#include "schemes/hybrid/params.h"
#include "schemes/sr/ack_pace.h"
#include "schemes/sr/answer.h"
#include "schemes/sr/sender.h"
#include "wire/hybrid.h"
#include "wire/selective_repeat.h"

struct hybrid_receiver {
    struct sr_arrivals arrivals; /* of data; its bits follow this struct, then the needs */
    uint8_t params[LH_SCHEME_PARAMS];
    struct lh_stats *stats;
    bool laid_out; /* the length is known, and so is the layout */
    bool asked;    /* by a probe, since the last answer */
    bool complete; /* was announced */
    bool all_sent; /* data, as a MARK announced */
    struct ec_layout layout;
    struct ec_needs needs;
    struct sr_ack_pace pace;
    struct sr_answer answer; /* that is being written, */
    uint32_t next_group;     /* and from which submessage on; layout.groups: none */
    uint32_t extra_arrived;
    struct sr_nack nack;
    uint32_t rows_mark; /* rows injected before this MARK and missing are lost */
};

static_assert(sizeof(struct hybrid_receiver) % sizeof(uint64_t) == 0, "the bits follow, aligned");

size_t hybrid_receiver_bytes(uint32_t chunks_max)
{
    return sizeof(struct hybrid_receiver) + sr_arrivals_bytes(chunks_max) + ec_needs_bytes(chunks_max);
}

void hybrid_receiver_start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    struct hybrid_receiver *receiver = state;
    assert(transfer->chunks <= SR_CHUNKS_MAX);
    *receiver = (struct hybrid_receiver){.stats = transfer->stats};
    memcpy(receiver->params, transfer->params, sizeof receiver->params);
    uint8_t *arrays = (uint8_t *)(receiver + 1);
    sr_arrivals_init(&receiver->arrivals, transfer->chunks, arrays);
    ec_needs_init(&receiver->needs, transfer->chunks, arrays + sr_arrivals_bytes(transfer->chunks));
    sr_ack_pace_init(&receiver->pace, true, now);
    sr_answer_init(&receiver->answer);
    sr_nack_init(&receiver->nack);
}

void hybrid_receiver_on_message(void *state, const uint8_t *data, size_t bytes,
                                const struct lh_receiver_view *view)
{
    struct hybrid_receiver *receiver = state;
    struct sr_timing timing = sr_timing_of(&view->path);
    struct sr_mark mark;
    if (sr_mark_decode(data, bytes, &mark) != 0 || mark.sent_through > receiver->arrivals.capacity) {
        sr_count(&receiver->stats->bad_control);
        return;
    }
    receiver->asked |= (mark.flags & SR_FLAG_PROBE) != 0;
    receiver->all_sent |= view->length_known && mark.sent_through >= view->chunks;
    sr_nack_on_mark(&receiver->nack, mark.mark, mark.sent_through, &timing, view->now);
}

/* ---- what has arrived -------------------------------------------------------------------------------- */

static struct ec_bitmaps bitmaps_of(const struct lh_receiver_view *view)
{
    return (struct ec_bitmaps){view->chunk_bitmap, view->extra_bitmap};
}

static void look(struct hybrid_receiver *receiver, const struct lh_receiver_view *view,
                 const struct sr_timing *timing)
{
    struct sr_arrivals *arrivals = &receiver->arrivals;
    if (view->length_known && !receiver->laid_out && view->chunks > 0) {
        receiver->layout = hybrid_layout_of(receiver->params, view->chunks);
        receiver->next_group = receiver->layout.groups;
        receiver->laid_out = true;
    }
    sr_arrivals_limit(arrivals, view->chunks);
    uint32_t fresh = sr_arrivals_update(arrivals, view->chunk_bitmap, view->chunks_arrived);
    uint32_t rows = view->extra_arrived - receiver->extra_arrived;
    receiver->extra_arrived = view->extra_arrived;
    if (fresh + rows > 0)
        sr_ack_pace_on_arrivals(&receiver->pace, fresh + rows, view->now);
    if (fresh > 0)
        sr_nack_on_arrivals(&receiver->nack, arrivals, timing, view->now);
}

static bool all_met(struct hybrid_receiver *receiver, const struct lh_receiver_view *view)
{
    struct ec_bitmaps bitmaps = bitmaps_of(view);
    if (!view->length_known)
        return false;
    if (receiver->arrivals.seen == receiver->arrivals.limit)
        return true;
    return receiver->laid_out &&
           receiver->arrivals.seen + receiver->extra_arrived >= receiver->layout.chunks &&
           ec_needs_met(&receiver->needs, &receiver->layout, &bitmaps);
}

/* ---- what is reported -------------------------------------------------------------------------------- */

static uint8_t rows_of(const struct hybrid_receiver *receiver, const struct lh_receiver_view *view,
                       uint32_t index)
{
    struct ec_group group = ec_layout_group(&receiver->layout, index);
    struct ec_bitmaps bitmaps = bitmaps_of(view);
    uint32_t rows = 0;
    if (ec_needs_group_met(&receiver->layout, &bitmaps, index))
        return HYBRID_DECODABLE;
    for (uint32_t r = 0; view->extra_bitmap != NULL && r < receiver->layout.places; r++) /* at most 100 */
        rows += __atomic_load_n(&view->extra_bitmap[group.first_place + r * group.stride],
                                __ATOMIC_RELAXED) != 0;
    return (uint8_t)rows;
}

/* From the first submessage that cannot be decoded on. */
static void begin_rows(struct hybrid_receiver *receiver, const struct lh_receiver_view *view,
                       const struct sr_timing *timing)
{
    /* A MARK may have been read before rows that reached this host earlier. */
    if (view->last_arrival_ns == LH_TIME_NEVER ||
        sr_after(view->last_arrival_ns, timing->window_ns) <= sr_caught_up(view))
        receiver->rows_mark = receiver->nack.mark;
    if (receiver->laid_out && receiver->layout.places > 0 && receiver->all_sent)
        receiver->next_group = receiver->needs.first_unmet;
}

/* As far as the list has capacity. */
static void write_rows(struct hybrid_receiver *receiver, const struct lh_receiver_view *view,
                       struct lh_actions *actions)
{
    while (receiver->laid_out && receiver->next_group < receiver->layout.groups) {
        struct lh_action *action = lh_action_add(actions, LH_ACTION_SEND_MESSAGE);
        if (action == NULL)
            return;
        struct hybrid_rows rows = {.mark = receiver->rows_mark, .first = receiver->next_group};
        while (rows.count < HYBRID_ROWS_MAX && receiver->next_group < receiver->layout.groups)
            rows.rows[rows.count++] = rows_of(receiver, view, receiver->next_group++);
        action->what.message.bytes = (uint32_t)hybrid_rows_encode(&rows, action->what.message.data);
    }
}

static void begin_answer(struct hybrid_receiver *receiver, enum sr_answer_kind kind,
                         const struct lh_receiver_view *view, const struct sr_timing *timing)
{
    sr_answer_begin(&receiver->answer, kind, &receiver->arrivals, &receiver->nack);
    begin_rows(receiver, view, timing);
    receiver->asked = false;
    sr_ack_pace_on_ack(&receiver->pace, view->now);
}

static bool writing(const struct hybrid_receiver *receiver)
{
    return receiver->answer.writing != SR_ANSWER_NONE ||
           (receiver->laid_out && receiver->next_group < receiver->layout.groups);
}

static void write_answer(struct hybrid_receiver *receiver, const struct lh_receiver_view *view,
                         struct lh_actions *actions)
{
    sr_answer_write(&receiver->answer, &receiver->arrivals, &receiver->nack, receiver->stats, actions);
    if (receiver->answer.writing == SR_ANSWER_NONE)
        write_rows(receiver, view, actions);
}

static enum sr_answer_kind answer_due(struct hybrid_receiver *receiver, const struct lh_receiver_view *view,
                                      const struct sr_timing *timing)
{
    const struct sr_arrivals *arrivals = &receiver->arrivals;
    if (sr_nack_on_step(&receiver->nack, arrivals, view, timing))
        return SR_ANSWER_NACK;
    if (receiver->asked)
        return arrivals->cumulative < receiver->nack.horizon ? SR_ANSWER_NACK : SR_ANSWER_ACK;
    bool paced = sr_ack_pace_expiry(&receiver->pace, arrivals->limit, timing) <= view->now;
    return paced ? SR_ANSWER_ACK : SR_ANSWER_NONE;
}

void hybrid_receiver_step(void *state, const struct lh_receiver_view *view, struct lh_actions *actions)
{
    struct hybrid_receiver *receiver = state;
    struct sr_timing timing = sr_timing_of(&view->path);
    look(receiver, view, &timing);
    bool met = receiver->complete || all_met(receiver, view);
    if (met && !receiver->complete)
        receiver->complete = lh_action_add(actions, LH_ACTION_COMPLETE) != NULL;
    if (met) { /* the connection notifies the sender */
        actions->next_ns = LH_TIME_NEVER;
        return;
    }
    write_answer(receiver, view, actions); /* the rest of one that the list had no capacity for */
    if (!writing(receiver)) {
        enum sr_answer_kind kind = answer_due(receiver, view, &timing);
        if (kind != SR_ANSWER_NONE)
            begin_answer(receiver, kind, view, &timing);
        write_answer(receiver, view, actions);
    }
    actions->next_ns = lh_earlier(sr_ack_pace_expiry(&receiver->pace, receiver->arrivals.limit, &timing),
                                  sr_nack_expiry(&receiver->nack, &receiver->arrivals, view, &timing));
}
