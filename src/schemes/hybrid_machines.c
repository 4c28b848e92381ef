/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/hybrid_scheme.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include <longhaul/scheme.h>

#include "schemes/ec_receiver.h"
#include "schemes/hybrid_groups.h"
#include "schemes/sr_arrivals.h"
#include "schemes/sr_ledger.h"
#include "schemes/sr_scheme.h"
#include "schemes/sr_timers.h"
#include "wire/scheme_messages.h"

/* ---- sender ---------------------------------------------------------------------------------------- */

#define LOSSES_TRUSTED                                                                                     \
    8u /* so many losses of this transfer show its rate better than what was planned for */

struct hybrid_sender {
    struct sr_ledger ledger; /* of the data; its arrays follow this struct, then the groups */
    struct hybrid_params params;
    struct ec_layout layout;
    struct lh_stats *stats;
    struct sr_probe probe;
    struct sr_backoff backoff;
    struct sr_marker marker;
    struct hybrid_reach reach;
    struct hybrid_groups groups;
    struct hybrid_encoding encoding;
    bool in_tail;         /* all data was injected, and nothing else waited then: it is covered by parity */
    bool waited;          /* at the last evaluation other data did, and only losses were looked after */
    bool end_marked;      /* a MARK covers the last data */
    bool fell_back;       /* for statistics */
    uint32_t losses;      /* reported, of data */
    uint32_t from_stamp;  /* parity covers what was injected from here on */
    double failure;       /* of a full submessage, as planned when the tail began */
    uint32_t dirty_first; /* submessages to be evaluated */
    uint32_t dirty_end;
};

static_assert(sizeof(struct hybrid_sender) % sizeof(uint64_t) == 0, "the ledger's arrays follow, aligned");

size_t hybrid_sender_bytes(uint32_t chunks_max)
{
    return sizeof(struct hybrid_sender) + sr_ledger_bytes(chunks_max) + hybrid_groups_bytes(chunks_max);
}

void hybrid_sender_start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    struct hybrid_sender *sender = state;
    (void)now;
    assert(transfer->chunks >= 1 && transfer->chunks <= SR_CHUNKS_MAX);
    *sender = (struct hybrid_sender){
        .params = hybrid_params_of(transfer->params),
        .layout = hybrid_layout_of(transfer->params, transfer->chunks),
        .stats = transfer->stats,
    };
    uint8_t *arrays = (uint8_t *)(sender + 1);
    sr_ledger_init(&sender->ledger, transfer->chunks, arrays);
    hybrid_groups_init(&sender->groups, &sender->layout, arrays + sr_ledger_bytes(transfer->chunks));
    sr_probe_init(&sender->probe);
    sr_backoff_init(&sender->backoff);
    sr_marker_init(&sender->marker);
    hybrid_reach_init(&sender->reach);
    hybrid_encoding_init(&sender->encoding, &sender->layout);
}

/* ---- what the receiver reports ----------------------------------------------------------------------- */

static void dirty(struct hybrid_sender *sender, uint32_t first, uint32_t end)
{
    if (first >= end)
        return;
    bool none = sender->dirty_first >= sender->dirty_end;
    sender->dirty_first = none || first < sender->dirty_first ? first : sender->dirty_first;
    sender->dirty_end = none || end > sender->dirty_end ? end : sender->dirty_end;
}

/* The submessages of all blocks that these chunks are part of. */
static void dirty_chunks(struct hybrid_sender *sender, uint32_t first, uint32_t end)
{
    const struct ec_layout *layout = &sender->layout;
    end = end < layout->chunks ? end : layout->chunks;
    if (first >= end)
        return;
    uint32_t first_group = first / layout->block_chunks * layout->block_groups;
    uint32_t end_group = ((end - 1) / layout->block_chunks + 1) * layout->block_groups;
    dirty(sender, first_group, end_group < layout->groups ? end_group : layout->groups);
}

static void on_received(struct hybrid_sender *sender, lh_time now)
{
    sr_probe_on_feedback(&sender->probe, now);
    sr_backoff_on_feedback(&sender->backoff, sender->ledger.arrived + sender->groups.rows_arrived);
}

static void on_ack(struct hybrid_sender *sender, const struct sr_ack *ack, lh_time now)
{
    struct sr_ledger *ledger = &sender->ledger;
    uint32_t cumulative = ledger->cumulative, lost = ledger->lost;
    sr_count(ack->flags & SR_FLAG_NACK ? &sender->stats->nacks_received : &sender->stats->acks_received);
    sr_report_arrivals(ledger, ack);
    on_received(sender, now);
    sr_marker_on_settled(&sender->marker, ack->mark);
    lost = lost < ledger->lost ? lost : ledger->lost;
    sr_report_losses(ledger, ack);
    sender->losses += ledger->lost - lost;
    if (sender->layout.places == 0)
        hybrid_groups_settle_copies(&sender->groups, ack->mark);
    dirty_chunks(sender, cumulative, ack->cumulative);
    dirty_chunks(sender, ack->base, ack->base + 64 * ack->words);
}

void hybrid_sender_on_message(void *state, const uint8_t *data, size_t bytes,
                              const struct lh_sender_view *view)
{
    struct hybrid_sender *sender = state;
    struct sr_ack ack;
    struct hybrid_rows rows;
    if (sr_ack_decode(data, bytes, &ack) == 0 &&
        sr_report_possible(&sender->ledger, &sender->marker, &ack)) {
        on_ack(sender, &ack, view->now);
    } else if (hybrid_rows_decode(data, bytes, &rows) == 0 && rows.mark <= sender->marker.mark &&
               hybrid_groups_on_rows(&sender->groups, &rows)) {
        on_received(sender, view->now);
        dirty(sender, rows.first, rows.first + rows.count);
    } else {
        sr_count(&sender->stats->bad_control);
    }
}

/* ---- what is needed ---------------------------------------------------------------------------------- */

static uint32_t in_flight(const struct hybrid_sender *sender)
{
    return sr_ledger_in_flight(&sender->ledger) + sender->groups.rows_in_flight;
}

/* As planned, or as this transfer shows when that is more. */
static struct hybrid_loss loss_now(const struct hybrid_sender *sender)
{
    struct hybrid_loss loss = {sender->params.loss, sender->params.burst};
    double known = (double)sender->losses + sender->ledger.acked;
    if (sender->losses >= LOSSES_TRUSTED)
        loss.chunk = fmin(fmax(loss.chunk, sender->losses / known), HYBRID_LOSS_MAX);
    return loss;
}

/* The target is that of a message: each submessage in flight takes its share of it. */
static double failure_now(const struct hybrid_sender *sender, const struct lh_sender_view *view)
{
    uint32_t flight = in_flight(sender) > view->flight_chunks ? in_flight(sender) : view->flight_chunks;
    double size = hybrid_code_size(sender->params.code);
    return sender->params.target * fmin(1, size / (flight > 0 ? flight : 1));
}

static void begin_tail(struct hybrid_sender *sender, const struct lh_sender_view *view)
{
    sender->in_tail = true;
    sender->failure = failure_now(sender, view);
    sender->from_stamp = hybrid_reach_from(&sender->reach, sender->params.tail_eighths);
    dirty_chunks(sender, sender->ledger.cumulative, sender->layout.chunks);
}

static void evaluate(struct hybrid_sender *sender, const struct lh_sender_view *view)
{
    if (!sender->in_tail && sr_ledger_all_sent(&sender->ledger) && !view->data_waits)
        begin_tail(sender, view);
    if (sender->waited && !view->data_waits)
        dirty_chunks(sender, sender->ledger.cumulative, sender->layout.chunks);
    sender->waited = sender->in_tail && view->data_waits;
    if (!sender->in_tail || sender->dirty_first >= sender->dirty_end)
        return;
    const struct hybrid_rule rule = {
        .loss = loss_now(sender),
        .failure = sender->failure,
        .from_stamp = sender->from_stamp,
        .waits = view->data_waits,
    };
    hybrid_groups_evaluate(&sender->groups, &sender->ledger, sender->dirty_first, sender->dirty_end, &rule);
    sender->dirty_first = sender->dirty_end = 0;
    sr_count_many(&sender->stats->submessages_failed, sender->groups.newly_failed);
    sr_count_many(&sender->stats->fallbacks, !sender->fell_back && sender->groups.newly_failed > 0);
    sender->fell_back |= sender->groups.newly_failed > 0;
    sender->groups.newly_failed = 0;
}

/* ---- what is injected -------------------------------------------------------------------------------- */

static void on_injection(struct hybrid_sender *sender, bool again, const struct sr_timing *timing,
                         lh_time now)
{
    if (again)
        sr_backoff_on_repair(&sender->backoff, timing, now);
    else
        sr_probe_on_injection(&sender->probe, now);
    sr_marker_on_injection(&sender->marker, again, now);
    hybrid_reach_on_injection(&sender->reach, sr_marker_stamp(&sender->marker), timing->rtt_ns, now);
}

/* Rows of submessages that stand side by side: the same row of neighbours, the least one of their block
 * first. */
static struct sr_run take_rows(struct hybrid_sender *sender, uint32_t index, uint32_t limit)
{
    struct hybrid_groups *groups = &sender->groups;
    const struct ec_layout *layout = &sender->layout;
    uint32_t stamp = sr_marker_stamp(&sender->marker);
    if (layout->places == 0) {
        hybrid_groups_take_row(groups, 0, stamp);
        return (struct sr_run){0, 1};
    }
    struct ec_block block = ec_layout_block(layout, index - index % layout->block_groups);
    uint32_t end = block.first_group + block.groups, at = index;
    for (uint32_t i = index; i < end; i++) /* at most HYBRID_SPREAD */
        if (hybrid_group_rows_due(&groups->all[i]) > 0 && groups->all[i].sent < groups->all[at].sent)
            at = i;
    uint32_t row = groups->all[at].sent, count = 0;
    while (at + count < end && count < limit && hybrid_group_rows_due(&groups->all[at + count]) > 0 &&
           groups->all[at + count].sent == row)
        hybrid_groups_take_row(groups, at + count++, stamp);
    uint32_t place = block.first_place + row * block.groups + (at - block.first_group);
    return (struct sr_run){layout->chunks + place, count};
}

struct injection {
    struct sr_run run;
    bool again;
    bool parity;
};

/* Copies of an only chunk are data. */
static bool rows_may_leave(const struct hybrid_sender *sender, const struct lh_sender_view *view)
{
    return sender->layout.places == 0 || (view->extra_open && !view->data_waits);
}

/* In the tail: what submessages want. False: nothing, or it is not there yet. */
static bool take_wanted(struct hybrid_sender *sender, const struct lh_sender_view *view, uint32_t limit,
                        struct injection *injection)
{
    struct hybrid_groups *groups = &sender->groups;
    uint32_t index = hybrid_groups_work(groups, rows_may_leave(sender, view));
    if (index == sender->layout.groups)
        return false;
    struct hybrid_group *group = &groups->all[index];
    if (group->repeats > 0) {
        uint32_t chunk = hybrid_groups_lost_chunk(groups, &sender->ledger, index);
        group->repeats = chunk == UINT32_MAX ? 0 : (uint8_t)(group->repeats - 1);
        if (chunk == UINT32_MAX) /* it has arrived since */
            return take_wanted(sender, view, limit, injection);
        sr_ledger_take_one(&sender->ledger, chunk, sr_marker_stamp(&sender->marker));
        *injection = (struct injection){{chunk, 1}, true, false};
        return true;
    }
    *injection = (struct injection){take_rows(sender, index, limit), false, true};
    return true;
}

static bool take(struct hybrid_sender *sender, const struct lh_sender_view *view,
                 const struct sr_timing *timing, uint32_t limit, struct injection *injection)
{
    struct sr_ledger *ledger = &sender->ledger;
    uint32_t stamp = sr_marker_stamp(&sender->marker);
    bool repairs = sr_backoff_expiry(&sender->backoff, timing) <= view->now;
    *injection = (struct injection){0};
    if (limit == 0)
        return false;
    if (sender->in_tail)
        return repairs && take_wanted(sender, view, limit, injection);
    if (repairs && sr_ledger_take_lost(ledger, limit, stamp, &injection->run)) {
        injection->again = true;
        return true;
    }
    return sr_ledger_take_new(ledger, limit, stamp, &injection->run);
}

/* At most LH_ACTIONS_MAX runs. */
static void inject(struct hybrid_sender *sender, const struct lh_sender_view *view,
                   const struct sr_timing *timing, struct lh_actions *actions)
{
    uint32_t budget = view->budget_chunks;
    struct injection injection;
    for (;;) {
        evaluate(sender, view); /* the tail may begin with the last data */
        if (actions->count == LH_ACTIONS_MAX || !take(sender, view, timing, budget, &injection))
            return;
        assert(injection.run.count >= 1 && injection.run.count <= budget);
        struct lh_action *action = lh_action_add(actions, LH_ACTION_SEND_CHUNKS);
        action->what.chunks.first = injection.run.first;
        action->what.chunks.count = injection.run.count;
        action->what.chunks.again = injection.again;
        budget -= injection.run.count;
        if (injection.parity)
            sr_count_many(&sender->stats->parity_chunks_sent, injection.run.count);
        on_injection(sender, injection.again, timing, view->now);
    }
}

static bool is_near(const struct hybrid_sender *sender, const struct lh_sender_view *view)
{
    uint32_t flight = in_flight(sender) > view->flight_chunks ? in_flight(sender) : view->flight_chunks;
    uint32_t unsent = sender->ledger.chunks - sender->ledger.sent_through;
    return view->later_chunks <= flight && unsent <= flight - view->later_chunks;
}

static void encode(struct hybrid_sender *sender, const struct lh_sender_view *view,
                   struct lh_actions *actions)
{
    struct hybrid_groups *groups = &sender->groups;
    struct hybrid_encode wanted;
    if (is_near(sender, view))
        hybrid_encoding_on_near(&sender->encoding, &sender->layout, sender->ledger.sent_through);
    uint32_t ahead = 0;
    if (sender->encoding.next_ahead < sender->layout.groups) {
        struct hybrid_loss loss = loss_now(sender);
        uint32_t size = ec_layout_group(&sender->layout, sender->encoding.next_ahead).size;
        loss = hybrid_groups_loss(&loss, sender->layout.block_groups);
        ahead =
            hybrid_strength(&loss, size, size, failure_now(sender, view), hybrid_groups_rows_max(groups));
    }
    while (actions->count < LH_ACTIONS_MAX &&
           hybrid_encoding_next(&sender->encoding, groups, sender->ledger.sent_through, ahead, &wanted)) {
        struct lh_action *action = lh_action_add(actions, LH_ACTION_ENCODE);
        action->what.encode.group = wanted.group;
        action->what.encode.first_row = wanted.first_row;
        action->what.encode.rows = wanted.rows;
    }
}

/* ---- MARKs ------------------------------------------------------------------------------------------- */

static void cover(struct hybrid_sender *sender, const struct sr_timing *timing, lh_time now,
                  struct lh_actions *actions)
{
    struct sr_marker *marker = &sender->marker;
    bool all_sent = sr_ledger_all_sent(&sender->ledger);
    if (!sr_mark_send(&sender->ledger, sr_marker_stamp(marker), 0, actions))
        return;
    sr_marker_on_cover(marker, all_sent, timing, now);
    sender->end_marked |= all_sent;
}

/* Something more can be injected as soon as there is budget. */
static bool goes_on(struct hybrid_sender *sender, const struct lh_sender_view *view)
{
    if (!sender->in_tail)
        return sender->ledger.lost > 0;
    return hybrid_groups_work(&sender->groups, rows_may_leave(sender, view)) < sender->layout.groups;
}

static void on_probe_expired(struct hybrid_sender *sender, const struct sr_timing *timing, lh_time now,
                             struct lh_actions *actions)
{
    struct sr_marker *marker = &sender->marker;
    bool covers = marker->cover != SR_COVERED;
    uint32_t number = covers || marker->mark == 0 ? sr_marker_stamp(marker) : marker->mark;
    if (!sr_mark_send(&sender->ledger, number, SR_FLAG_PROBE, actions))
        return;
    if (covers)
        sr_marker_on_cover(marker, sr_ledger_all_sent(&sender->ledger), timing, now);
    marker->mark = number;
    sr_count(&sender->stats->probes_sent);
    sr_probe_on_sent(&sender->probe, now);
}

static void send_messages(struct hybrid_sender *sender, const struct lh_sender_view *view,
                          const struct sr_timing *timing, struct lh_actions *actions)
{
    struct sr_marker *marker = &sender->marker;
    bool all_sent = sr_ledger_all_sent(&sender->ledger);
    bool end = all_sent && !sender->end_marked;
    if (sr_marker_wants_cover(marker, !end && goes_on(sender, view), all_sent))
        cover(sender, timing, view->now, actions);
    if (sr_marker_repeat_expiry(marker) <= view->now &&
        sr_mark_send(&sender->ledger, marker->mark, 0, actions))
        sr_marker_on_repeat_expired(marker, timing, view->now);
    if (sr_probe_expiry(&sender->probe, timing) <= view->now)
        on_probe_expired(sender, timing, view->now, actions);
}

static lh_time next_expiry(const struct hybrid_sender *sender, const struct sr_timing *timing, lh_time now)
{
    lh_time next = sr_probe_expiry(&sender->probe, timing);
    lh_time ready = sr_backoff_expiry(&sender->backoff, timing);
    bool repairs = sender->ledger.lost > 0 || sender->groups.work_from < sender->layout.groups;
    if (repairs && ready > now)
        next = lh_earlier(next, ready);
    next = lh_earlier(next, sr_marker_cover_expiry(&sender->marker, timing));
    return lh_earlier(next, sr_marker_repeat_expiry(&sender->marker));
}

void hybrid_sender_step(void *state, const struct lh_sender_view *view, struct lh_actions *actions)
{
    struct hybrid_sender *sender = state;
    struct sr_timing timing = sr_timing_of(&view->path);
    hybrid_encoding_on_encoded(&sender->encoding, &sender->groups, view->encoded);
    if (sr_marker_cover_expiry(&sender->marker, &timing) <= view->now)
        cover(sender, &timing, view->now, actions); /* first: a full list would delay it for ever */
    inject(sender, view, &timing, actions);
    send_messages(sender, view, &timing, actions);
    encode(sender, view, actions);
    actions->in_flight_chunks = in_flight(sender);
    actions->next_ns = next_expiry(sender, &timing, view->now);
}

/* ---- receiver -------------------------------------------------------------------------------------- */

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
