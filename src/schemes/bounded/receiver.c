/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded/receiver.h"

#include <assert.h>

#include "schemes/bounded/coding.h"
#include "schemes/ec/needs.h"
#include "schemes/sr/ack_pace.h"
#include "schemes/sr/arrivals.h"
#include "wire/bounded_completion.h"

struct bounded_receiver {
    struct sr_arrivals arrivals; /* its bits follow this struct */
    struct bounded_params params;
    struct lh_stats *stats;
    uint32_t extra_seen; /* chunks of parity */
    uint32_t through;    /* one past the last place that arrived */
    lh_time end_ns;      /* when the end was seen; LH_TIME_NEVER: not yet */
    bool laid_out;       /* the length is known, and so is the layout */
    bool over;           /* COMPLETE or FINISH was said */
    struct ec_layout layout;
    struct sr_ack_pace pace;
    struct ec_needs needs; /* its bytes follow the bits */
};

static_assert(sizeof(struct bounded_receiver) % sizeof(uint64_t) == 0, "the bits follow, aligned");

size_t bounded_receiver_bytes(uint32_t chunks_max)
{
    return sizeof(struct bounded_receiver) + sr_arrivals_bytes(chunks_max) + ec_needs_bytes(chunks_max);
}

void bounded_receiver_start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    struct bounded_receiver *receiver = state;
    *receiver = (struct bounded_receiver){
        .params = bounded_params_of(transfer->params), .stats = transfer->stats, .end_ns = LH_TIME_NEVER};
    uint8_t *behind = (uint8_t *)(receiver + 1);
    sr_arrivals_init(&receiver->arrivals, transfer->chunks, behind);
    ec_needs_init(&receiver->needs, transfer->chunks, behind + sr_arrivals_bytes(transfer->chunks));
    sr_ack_pace_init(&receiver->pace, true, now);
}

void bounded_receiver_on_message(void *state, const uint8_t *data, size_t bytes,
                                 const struct lh_receiver_view *view)
{
    struct bounded_receiver *receiver = state;
    struct bounded_message message;
    if (bounded_message_decode(data, bytes, &message) != 0 || message.kind != BOUNDED_END) {
        sr_count(&receiver->stats->bad_control);
        return;
    }
    receiver->end_ns = lh_earlier(receiver->end_ns, view->now);
}

/* ---- what has arrived -------------------------------------------------------------------------------- */

/* Places of parity from behind: those that are known are not looked at again. */
static uint32_t extra_through(const struct bounded_receiver *receiver, const struct lh_receiver_view *view)
{
    uint32_t chunks = receiver->layout.chunks;
    uint32_t known = receiver->through > chunks ? receiver->through - chunks : 0;
    uint32_t place = ec_layout_extra(&receiver->layout);
    while (place > known && __atomic_load_n(&view->extra_bitmap[place - 1], __ATOMIC_ACQUIRE) == 0)
        place--;
    return place > 0 ? chunks + place : 0;
}

static void note_through(struct bounded_receiver *receiver, uint32_t place)
{
    if (place > receiver->through)
        receiver->through = place;
}

static void look(struct bounded_receiver *receiver, const struct lh_receiver_view *view)
{
    struct sr_arrivals *arrivals = &receiver->arrivals;
    if (view->length_known && !receiver->laid_out) {
        receiver->layout = bounded_layout_of(&receiver->params, view->chunks);
        receiver->laid_out = true;
    }
    sr_arrivals_limit(arrivals, view->chunks);
    uint32_t fresh = sr_arrivals_update(arrivals, view->chunk_bitmap, view->chunks_arrived);
    note_through(receiver, arrivals->highest);
    if (receiver->laid_out && view->extra_arrived > receiver->extra_seen) {
        fresh += view->extra_arrived - receiver->extra_seen;
        receiver->extra_seen = view->extra_arrived;
        note_through(receiver, extra_through(receiver, view));
    }
    if (fresh > 0)
        sr_ack_pace_on_arrivals(&receiver->pace, fresh, view->now);
}

static bool is_whole(struct bounded_receiver *receiver, const struct lh_receiver_view *view)
{
    const struct sr_arrivals *arrivals = &receiver->arrivals;
    struct ec_bitmaps bitmaps = {view->chunk_bitmap, view->extra_bitmap};
    if (!receiver->laid_out)
        return false;
    /* The bitmap may be ahead of the count, by which the connection knows that nothing is to be decoded. */
    if (arrivals->seen == arrivals->limit && view->chunks_arrived >= arrivals->limit)
        return true;
    return receiver->layout.places > 0 && receiver->extra_seen > 0 &&
           view->chunks_arrived + receiver->extra_seen >= arrivals->limit &&
           ec_needs_met(&receiver->needs, &receiver->layout, &bitmaps);
}

/* With a code, a later message may leave while parity of this one is computed. */
static void note_end(struct bounded_receiver *receiver, const struct lh_receiver_view *view,
                     const struct sr_timing *timing)
{
    lh_time behind_ns = receiver->params.codes ? timing->rtt_ns : 0;
    receiver->end_ns = lh_earlier(receiver->end_ns, sr_after(view->later_arrival_ns, behind_ns));
    if (receiver->laid_out && receiver->through >= bounded_layout_end(&receiver->layout))
        receiver->end_ns = lh_earlier(receiver->end_ns, view->now);
}

/* Without a length nothing can be delivered: END, which is repeated, has it. */
static lh_time settle_expiry(const struct bounded_receiver *receiver, const struct lh_receiver_view *view,
                             const struct sr_timing *timing)
{
    if (receiver->end_ns == LH_TIME_NEVER || !receiver->laid_out)
        return LH_TIME_NEVER;
    lh_time quiet_ns = receiver->end_ns;
    if (view->last_arrival_ns != LH_TIME_NEVER && view->last_arrival_ns > quiet_ns)
        quiet_ns = view->last_arrival_ns;
    return sr_after(quiet_ns, timing->window_ns);
}

/* ---- what is said ------------------------------------------------------------------------------------ */

static void write_ack(struct bounded_receiver *receiver, lh_time now, struct lh_actions *actions)
{
    struct lh_action *action = lh_action_add(actions, LH_ACTION_SEND_MESSAGE);
    if (action == NULL)
        return;
    const struct bounded_message ack = {BOUNDED_ACK, receiver->through};
    action->what.message.bytes = (uint32_t)bounded_message_encode(&ack, action->what.message.data);
    sr_ack_pace_on_ack(&receiver->pace, now);
    sr_count(&receiver->stats->acks_sent);
}

static lh_time next_expiry(const struct bounded_receiver *receiver, const struct lh_receiver_view *view,
                           const struct sr_timing *timing)
{
    lh_time next = lh_earlier(sr_ack_pace_expiry(&receiver->pace, view->chunks, timing),
                              settle_expiry(receiver, view, timing));
    if (next > view->now)
        return next;
    /* Due, but arrivals still wait to be looked at. */
    return sr_after(view->now, timing->window_ns / 16 + 1);
}

void bounded_receiver_step(void *state, const struct lh_receiver_view *view, struct lh_actions *actions)
{
    struct bounded_receiver *receiver = state;
    struct sr_timing timing = sr_timing_of(&view->path);
    actions->next_ns = LH_TIME_NEVER;
    if (receiver->over)
        return;
    look(receiver, view);
    note_end(receiver, view, &timing);
    bool whole = is_whole(receiver, view);
    if (whole || settle_expiry(receiver, view, &timing) <= sr_caught_up(view)) {
        receiver->over = lh_action_add(actions, whole ? LH_ACTION_COMPLETE : LH_ACTION_FINISH) != NULL;
        return; /* the connection tells the sender */
    }
    if (sr_ack_pace_expiry(&receiver->pace, view->chunks, &timing) <= view->now)
        write_ack(receiver, view->now, actions);
    actions->next_ns = next_expiry(receiver, view, &timing);
}
