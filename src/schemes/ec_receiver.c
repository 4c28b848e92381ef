/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/receiver.h"

#include <assert.h>
#include <string.h>

#include "schemes/ec/asking.h"
#include "schemes/ec/needs.h"
#include "schemes/sr/ack_pace.h"
#include "schemes/sr/settle.h"

struct ec_receiver {
    uint8_t params[LH_SCHEME_PARAMS];
    uint32_t capacity;       /* chunks in the buffer */
    bool laid_out;           /* the length is known, and so is the layout */
    bool asked;              /* by a probe, since the last ACK */
    bool complete;           /* was said */
    struct ec_layout layout; /* meaningful when laid_out */
    struct lh_stats *stats;
    uint32_t arrived;  /* chunks that were seen, extra or not */
    uint32_t reported; /* what the MARK of the last ACK said was injected */
    struct sr_ack_pace pace;
    struct sr_settle marks;
    struct ec_asking asking;
    struct ec_needs needs; /* its bytes follow this struct */
};

size_t ec_receiver_bytes(uint32_t chunks_max)
{
    return sizeof(struct ec_receiver) + ec_needs_bytes(chunks_max);
}

void ec_receiver_start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    struct ec_receiver *receiver = state;
    memcpy(receiver->params, transfer->params, sizeof(receiver->params));
    receiver->capacity = transfer->chunks;
    receiver->laid_out = false;
    receiver->asked = false;
    receiver->complete = false;
    receiver->stats = transfer->stats;
    receiver->arrived = 0;
    receiver->reported = 0;
    sr_ack_pace_init(&receiver->pace, true, now);
    sr_settle_init(&receiver->marks);
    ec_asking_init(&receiver->asking);
    ec_needs_init(&receiver->needs, transfer->chunks, receiver + 1);
}

void ec_receiver_on_message(void *state, const uint8_t *data, size_t bytes,
                            const struct lh_receiver_view *view)
{
    struct ec_receiver *receiver = state;
    struct sr_timing timing = sr_timing_of(&view->path);
    struct ec_mark mark;
    if (ec_mark_decode(data, bytes, &mark) != 0 ||
        !ec_asking_on_mark(&receiver->asking, &mark, receiver->arrived, view->now)) {
        sr_count(&receiver->stats->bad_control);
        return;
    }
    if (mark.flags & EC_FLAG_PROBE)
        receiver->asked = true;
    sr_settle_add(&receiver->marks, mark.injected, mark.mark, &timing, view->now);
}

/* ---- what has arrived -------------------------------------------------------------------------------- */

static struct ec_bitmaps bitmaps_of(const struct lh_receiver_view *view)
{
    return (struct ec_bitmaps){view->chunk_bitmap, view->extra_bitmap};
}

static void look(struct ec_receiver *receiver, const struct lh_receiver_view *view)
{
    uint32_t arrived = view->chunks_arrived + view->extra_arrived;
    if (view->length_known && !receiver->laid_out) {
        assert(view->chunks <= receiver->capacity);
        receiver->layout = ec_layout_of(receiver->params, view->chunks);
        receiver->laid_out = true;
    }
    if (arrived <= receiver->arrived)
        return;
    sr_ack_pace_on_arrivals(&receiver->pace, arrived - receiver->arrived, view->now);
    receiver->arrived = arrived;
}

/* No message can be decoded from fewer chunks than it has. */
static bool all_met(struct ec_receiver *receiver, const struct lh_receiver_view *view)
{
    struct ec_bitmaps bitmaps = bitmaps_of(view);
    return receiver->laid_out && receiver->arrived >= receiver->layout.chunks &&
           ec_needs_met(&receiver->needs, &receiver->layout, &bitmaps);
}

/* At most SR_SAMPLES rounds. */
static void settle_marks(struct ec_receiver *receiver, const struct lh_receiver_view *view,
                         const struct sr_timing *timing)
{
    while (sr_settle_expiry(&receiver->marks, timing) <= sr_caught_up(view))
        sr_settle_on_expired(&receiver->marks);
}

/* ---- what is said ------------------------------------------------------------------------------------ */

static lh_time fallback_expiry(const struct ec_receiver *receiver, const struct lh_receiver_view *view,
                               const struct sr_timing *timing)
{
    if (!receiver->laid_out)
        return LH_TIME_NEVER;
    return ec_asking_fallback_expiry(&receiver->asking, receiver->layout.params.beta_hundredths,
                                     view->last_arrival_ns, timing);
}

static void on_fallback_expired(struct ec_receiver *receiver, const struct lh_receiver_view *view,
                                const struct sr_timing *timing)
{
    struct ec_asking *asking = &receiver->asking;
    struct ec_bitmaps bitmaps = bitmaps_of(view);
    struct ec_path_seen seen = {receiver->marks.newest.through, receiver->arrived};
    uint32_t failed = 0;
    uint32_t count = ec_needs_ask(&receiver->needs, &receiver->layout, &bitmaps, &seen, asking->runs,
                                  EC_PARTS_MAX * EC_RUNS_MAX, &failed);
    if (count == 0) /* the rest has come just now; the next step sees it */
        return;
    if (asking->round == 0)
        sr_count(&receiver->stats->fallbacks);
    sr_count_many(&receiver->stats->submessages_failed, failed);
    ec_asking_on_fallback_expired(asking, count, timing, view->now);
}

/* As far as the list has room: at most EC_PARTS_MAX messages. */
static void write_request(struct ec_receiver *receiver, struct lh_actions *actions)
{
    struct ec_request request;
    while (ec_asking_next(&receiver->asking, &request)) {
        struct lh_action *action = lh_action_add(actions, LH_ACTION_SEND_MESSAGE);
        if (action == NULL)
            return;
        action->what.message.bytes = (uint32_t)ec_request_encode(&request, action->what.message.data);
        ec_asking_on_sent(&receiver->asking);
        sr_count(&receiver->stats->nacks_sent);
    }
}

static bool ack_due(const struct ec_receiver *receiver, const struct lh_receiver_view *view,
                    const struct sr_timing *timing)
{
    uint32_t settled = receiver->marks.settled.through;
    bool loss_shown = settled > receiver->reported && settled > receiver->arrived;
    return receiver->asked || loss_shown ||
           sr_ack_pace_expiry(&receiver->pace, view->chunks, timing) <= view->now;
}

static void write_ack(struct ec_receiver *receiver, lh_time now, struct lh_actions *actions)
{
    struct lh_action *action = lh_action_add(actions, LH_ACTION_SEND_MESSAGE);
    if (action == NULL)
        return;
    const struct sr_sample *settled = &receiver->marks.settled;
    struct ec_ack ack = {settled->mark, settled->through, receiver->arrived};
    action->what.message.bytes = (uint32_t)ec_ack_encode(&ack, action->what.message.data);
    receiver->reported = settled->through;
    receiver->asked = false;
    sr_ack_pace_on_ack(&receiver->pace, now);
    sr_count(&receiver->stats->acks_sent);
}

static lh_time next_expiry(const struct ec_receiver *receiver, const struct lh_receiver_view *view,
                           const struct sr_timing *timing)
{
    lh_time next = sr_ack_pace_expiry(&receiver->pace, view->chunks, timing);
    if (receiver->arrived < receiver->marks.newest.through)
        next = lh_earlier(next, sr_settle_expiry(&receiver->marks, timing));
    next = lh_earlier(next, fallback_expiry(receiver, view, timing));
    next = lh_earlier(next, ec_asking_repeat_expiry(&receiver->asking));
    if (next > view->now)
        return next;
    /* Due, but arrivals still wait to be looked at. */
    return sr_after(view->now, timing->window_ns / 16 + 1);
}

void ec_receiver_step(void *state, const struct lh_receiver_view *view, struct lh_actions *actions)
{
    struct ec_receiver *receiver = state;
    struct sr_timing timing = sr_timing_of(&view->path);
    look(receiver, view);
    bool met = receiver->complete || all_met(receiver, view);
    if (met && !receiver->complete)
        receiver->complete = lh_action_add(actions, LH_ACTION_COMPLETE) != NULL;
    if (met) { /* the connection tells the sender */
        actions->next_ns = LH_TIME_NEVER;
        return;
    }
    settle_marks(receiver, view, &timing);
    if (fallback_expiry(receiver, view, &timing) <= sr_caught_up(view))
        on_fallback_expired(receiver, view, &timing);
    else if (ec_asking_repeat_expiry(&receiver->asking) <= view->now)
        ec_asking_on_repeat_expired(&receiver->asking, view->now);
    write_request(receiver, actions);
    if (ack_due(receiver, view, &timing))
        write_ack(receiver, view->now, actions);
    actions->next_ns = next_expiry(receiver, view, &timing);
}
