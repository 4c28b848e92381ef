/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/sender.h"

#include <assert.h>

#include "schemes/ec/opening.h"
#include "schemes/ec/repairs.h"
#include "schemes/sr/marker.h"
#include "schemes/sr/probe.h"

struct ec_sender {
    struct ec_layout layout;
    struct lh_stats *stats;
    struct sr_probe probe;
    struct sr_marker marker;
    struct ec_opening opening;
    struct ec_repairs repairs;
    uint32_t injected;  /* chunks, each as often as it was */
    uint32_t arrived;   /* as the receiver last said */
    uint32_t settled;   /* injected before the newest MARK that the receiver reported */
    uint32_t encodings; /* given out */
    bool tell;          /* that a request was heard, at once */
};

size_t ec_sender_bytes(uint32_t chunks_max)
{
    (void)chunks_max;
    return sizeof(struct ec_sender);
}

void ec_sender_start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    (void)now;
    struct ec_sender *sender = state;
    sender->layout = ec_layout_of(transfer->params, transfer->chunks);
    sender->stats = transfer->stats;
    sender->injected = 0;
    sender->arrived = 0;
    sender->settled = 0;
    sender->encodings = 0;
    sender->tell = false;
    sr_probe_init(&sender->probe);
    sr_marker_init(&sender->marker);
    ec_opening_init(&sender->opening, &sender->layout);
    ec_repairs_init(&sender->repairs);
}

/* All of the present round is injected. */
static bool round_done(const struct ec_sender *sender)
{
    return ec_opening_done(&sender->opening, &sender->layout) && ec_repairs_done(&sender->repairs);
}

/* ---- what the receiver says -------------------------------------------------------------------------- */

static void on_ack(struct ec_sender *sender, const struct ec_ack *ack, lh_time now)
{
    if (ack->mark > sender->marker.mark || ack->injected > sender->injected ||
        ack->arrived > sender->injected) {
        sr_count(&sender->stats->bad_control);
        return;
    }
    sr_count(&sender->stats->acks_received);
    sr_probe_on_heard(&sender->probe, now);
    sr_marker_on_settled(&sender->marker, ack->mark);
    if (ack->arrived > sender->arrived)
        sender->arrived = ack->arrived;
    if (ack->injected > sender->settled)
        sender->settled = ack->injected;
}

/* What no receiver of ours asks for: something before the end of the round was told. */
static bool too_early(const struct ec_sender *sender, const struct ec_request *request)
{
    return request->round > sender->repairs.round &&
           (!round_done(sender) || sender->marker.cover != SR_COVERED);
}

static void on_request(struct ec_sender *sender, const struct ec_request *request, lh_time now)
{
    enum ec_heard heard = EC_HEARD_BAD;
    bool next_round = request->round > sender->repairs.round;
    if (!too_early(sender, request))
        heard = ec_repairs_on_request(&sender->repairs, &sender->layout, request, sender->encodings);
    if (heard == EC_HEARD_BAD) {
        sr_count(&sender->stats->bad_control);
        return;
    }
    sr_count(&sender->stats->nacks_received);
    sr_probe_on_heard(&sender->probe, now);
    if (next_round)
        sender->settled = sender->injected; /* all of the round before has arrived, or is lost */
    bool last_part = request->part + 1u == request->parts; /* one answer is enough for all of them */
    if (heard == EC_HEARD_WHOLE || (heard == EC_HEARD_AGAIN && last_part))
        sender->tell = true;
}

void ec_sender_on_message(void *state, const uint8_t *data, size_t bytes, const struct lh_sender_view *view)
{
    struct ec_sender *sender = state;
    struct ec_ack ack;
    struct ec_request request;
    if (ec_ack_decode(data, bytes, &ack) == 0)
        on_ack(sender, &ack, view->now);
    else if (ec_request_decode(data, bytes, &request) == 0)
        on_request(sender, &request, view->now);
    else
        sr_count(&sender->stats->bad_control);
}

/* ---- what is done next ------------------------------------------------------------------------------- */

static bool take(struct ec_sender *sender, const struct ec_ready *ready, uint32_t limit,
                 struct ec_sending *sending)
{
    const struct ec_layout *layout = &sender->layout;
    if (!ec_opening_done(&sender->opening, layout))
        return ec_opening_take(&sender->opening, layout, ready, limit, sending);
    return ec_repairs_take(&sender->repairs, layout, ready, limit, sending);
}

static void write_sending(const struct ec_layout *layout, const struct ec_sending *sending,
                          struct lh_action *action)
{
    uint32_t all = layout->chunks + ec_layout_extra(layout);
    uint32_t end = sending->first + sending->count;
    assert(sending->count >= 1);
    assert(end <= layout->chunks || (sending->first >= layout->chunks && end <= all));
    action->what.chunks.first = sending->first;
    action->what.chunks.count = sending->count;
    action->what.chunks.again = sending->again;
}

/* At most LH_ACTIONS_MAX stretches. */
static void inject(struct ec_sender *sender, const struct lh_sender_view *view, struct lh_actions *actions)
{
    struct ec_ready ready = {view->extra_open, view->encoded};
    /* Parity that nobody asked for delays no data; but what it completes must not keep its slot for ever. */
    if (!ec_opening_done(&sender->opening, &sender->layout) && view->data_waits && !view->holds_up)
        ready.extra_open = false;
    uint32_t budget = view->budget_chunks;
    struct ec_sending sending;
    while (actions->count < LH_ACTIONS_MAX && take(sender, &ready, budget, &sending)) {
        assert(sending.count <= budget);
        write_sending(&sender->layout, &sending, lh_action_add(actions, LH_ACTION_SEND_CHUNKS));
        budget -= sending.count;
        sender->injected += sending.count;
        if (sending.parity)
            sr_count_many(&sender->stats->parity_chunks_sent, sending.count);
        sr_probe_on_injection(&sender->probe, view->now);
        sr_marker_on_injection(&sender->marker, false, view->now);
    }
}

static void encode(struct ec_sender *sender, const struct lh_sender_view *view, struct lh_actions *actions)
{
    const struct ec_layout *layout = &sender->layout;
    assert(view->encoded <= sender->encodings);
    while (actions->count < LH_ACTIONS_MAX && sender->encodings - view->encoded < EC_ENCODINGS_AHEAD) {
        struct ec_encoding encoding;
        if (!ec_opening_encode(&sender->opening, layout, &encoding) &&
            !ec_repairs_encode(&sender->repairs, layout, &encoding))
            return;
        assert(encoding.group < layout->groups && encoding.rows >= 1);
        assert(encoding.first_row + encoding.rows <= layout->places);
        struct lh_action *action = lh_action_add(actions, LH_ACTION_ENCODE);
        action->what.encode.group = encoding.group;
        action->what.encode.first_row = encoding.first_row;
        action->what.encode.rows = encoding.rows;
        sender->encodings++;
    }
}

/* False when the list is full. */
static bool send_mark(struct ec_sender *sender, uint32_t number, uint8_t flags, struct lh_actions *actions)
{
    struct lh_action *action = lh_action_add(actions, LH_ACTION_SEND_MESSAGE);
    if (action == NULL)
        return false;
    struct ec_mark mark = {
        .flags = (uint8_t)(flags | (round_done(sender) ? EC_FLAG_END : 0)),
        .mark = number,
        .round = sender->repairs.round,
        .injected = sender->injected,
    };
    action->what.message.bytes = (uint32_t)ec_mark_encode(&mark, action->what.message.data);
    sender->tell = false;
    return true;
}

/* A MARK that covers what is uncovered, and is numbered anew then. False when the list is full. */
static bool send_news(struct ec_sender *sender, uint8_t flags, const struct sr_timing *timing, lh_time now,
                      struct lh_actions *actions)
{
    struct sr_marker *marker = &sender->marker;
    bool covers = marker->cover != SR_COVERED;
    if (!send_mark(sender, covers ? sr_marker_stamp(marker) : marker->mark, flags, actions))
        return false;
    if (covers)
        sr_marker_on_cover(marker, round_done(sender), timing, now);
    return true;
}

static void on_repeat_expired(struct ec_sender *sender, const struct sr_timing *timing, lh_time now,
                              struct lh_actions *actions)
{
    if (send_mark(sender, sender->marker.mark, 0, actions))
        sr_marker_on_repeat_expired(&sender->marker, timing, now);
}

static void on_probe_expired(struct ec_sender *sender, const struct sr_timing *timing, lh_time now,
                             struct lh_actions *actions)
{
    if (!send_news(sender, EC_FLAG_PROBE, timing, now, actions))
        return;
    sr_count(&sender->stats->probes_sent);
    sr_probe_on_sent(&sender->probe, now);
}

static void say(struct ec_sender *sender, const struct sr_timing *timing, lh_time now,
                struct lh_actions *actions)
{
    struct sr_marker *marker = &sender->marker;
    if (sender->tell || sr_marker_wants_cover(marker, !round_done(sender), round_done(sender)))
        send_news(sender, 0, timing, now, actions);
    if (sr_marker_repeat_expiry(marker) <= now)
        on_repeat_expired(sender, timing, now, actions);
    if (sr_probe_expiry(&sender->probe, timing) <= now)
        on_probe_expired(sender, timing, now, actions);
}

static uint32_t in_flight(const struct ec_sender *sender)
{
    uint32_t gone = sender->arrived > sender->settled ? sender->arrived : sender->settled;
    assert(gone <= sender->injected);
    return sender->injected - gone;
}

void ec_sender_step(void *state, const struct lh_sender_view *view, struct lh_actions *actions)
{
    struct ec_sender *sender = state;
    struct sr_timing timing = sr_timing_of(&view->path);
    lh_time now = view->now;
    if (sr_marker_cover_expiry(&sender->marker, &timing) <=
        now) /* under a full list it would wait for ever */
        send_news(sender, 0, &timing, now, actions);
    inject(sender, view, actions);
    say(sender, &timing, now, actions);
    encode(sender, view, actions);
    actions->in_flight_chunks = in_flight(sender);
    lh_time next = lh_earlier(sr_marker_cover_expiry(&sender->marker, &timing),
                              sr_marker_repeat_expiry(&sender->marker));
    actions->next_ns = lh_earlier(next, sr_probe_expiry(&sender->probe, &timing));
}
