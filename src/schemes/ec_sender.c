/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec_sender.h"

#include <assert.h>
#include <string.h>

#include <longhaul/scheme.h>

#include "schemes/ec_layout.h"
#include "schemes/sr_ledger.h"
#include "schemes/sr_timers.h"
#include "wire/scheme_messages.h"

/* ---- opening --------------------------------------------------------------------------------------- */

#define COPIES_MAX 2u /* beside the chunk itself */

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void ec_opening_init(struct ec_opening *opening, const struct ec_layout *layout)
{
    *opening = (struct ec_opening){0};
    if (layout->chunks == 1)
        opening->copies = smaller(layout->params.m, COPIES_MAX);
    if (layout->places == 0) {
        opening->next_group = layout->groups;
        opening->done_groups = layout->groups;
    }
}

bool ec_opening_done(const struct ec_opening *opening, const struct ec_layout *layout)
{
    return opening->next_chunk == layout->chunks && opening->copies == 0 &&
           opening->done_groups == layout->groups;
}

static bool take_data(struct ec_opening *opening, const struct ec_layout *layout, uint32_t limit,
                      struct ec_sending *sending)
{
    uint32_t count = smaller(limit, layout->chunks - opening->next_chunk);
    *sending = (struct ec_sending){.first = opening->next_chunk, .count = count};
    opening->next_chunk += count;
    return count > 0;
}

/* Row 0 of a block can follow its encoding group by group, the other rows when all its groups are ready. */
static uint32_t parity_ready(const struct ec_block *block, uint32_t encoded)
{
    uint32_t groups = encoded > block->first_group ? encoded - block->first_group : 0;
    return groups >= block->groups ? block->parity : groups;
}

static bool take_parity(struct ec_opening *opening, const struct ec_layout *layout,
                        const struct ec_ready *ready, uint32_t limit, struct ec_sending *sending)
{
    struct ec_block block = ec_layout_block(layout, opening->done_groups);
    uint32_t end = ready->extra_open ? parity_ready(&block, ready->encoded) : 0;
    if (end <= opening->next_parity)
        return false;
    uint32_t count = smaller(limit, end - opening->next_parity);
    *sending = (struct ec_sending){
        .first = layout->chunks + block.first_place + opening->next_parity, .count = count, .parity = true};
    opening->next_parity += count;
    assert(opening->next_parity <= block.parity);
    if (opening->next_parity == block.parity) {
        opening->done_groups += block.groups;
        opening->next_parity = 0;
    }
    return count > 0;
}

bool ec_opening_take(struct ec_opening *opening, const struct ec_layout *layout,
                     const struct ec_ready *ready, uint32_t limit, struct ec_sending *sending)
{
    if (limit == 0 || ec_opening_done(opening, layout))
        return false;
    if (opening->next_chunk < layout->chunks)
        return take_data(opening, layout, limit, sending);
    if (opening->copies == 0)
        return take_parity(opening, layout, ready, limit, sending);
    opening->copies--;
    *sending = (struct ec_sending){.count = 1, .parity = true};
    return true;
}

bool ec_opening_encode(struct ec_opening *opening, const struct ec_layout *layout,
                       struct ec_encoding *encoding)
{
    if (opening->next_group == layout->groups)
        return false;
    struct ec_group group = ec_layout_group(layout, opening->next_group);
    *encoding = (struct ec_encoding){.group = opening->next_group++, .rows = group.rows};
    assert(encoding->rows >= 1);
    return true;
}

/* ---- repairs --------------------------------------------------------------------------------------- */

void ec_repairs_init(struct ec_repairs *repairs)
{
    repairs->round = 0;
    repairs->count = 0;
    repairs->chunks_left = 0;
    repairs->encode_base = 0;
    repairs->data = (struct ec_cursor){0};
    repairs->parity = (struct ec_cursor){0};
    repairs->encode = (struct ec_cursor){0};
    repairs->parts = 0;
    repairs->last_count = 0;
    repairs->parts_received = 0;
}

/* ---- what is asked for ------------------------------------------------------------------------------- */

static bool is_parity(const struct ec_layout *layout, const struct ec_run *run)
{
    return run->first >= ec_layout_group(layout, run->group).size;
}

/* A run is data, or rows that only a request brings forth. */
static bool run_possible(const struct ec_layout *layout, const struct ec_run *run)
{
    if (run->group >= layout->groups)
        return false;
    struct ec_group group = ec_layout_group(layout, run->group);
    uint32_t end = (uint32_t)run->first + run->count;
    if (run->first < group.size)
        return end <= group.size;
    return run->first >= group.size + group.rows && end <= group.size + ec_group_rows_max(layout, &group);
}

static bool runs_possible(const struct ec_layout *layout, const struct ec_request *request)
{
    for (uint32_t i = 0; i < request->count; i++) /* at most EC_RUNS_MAX */
        if (!run_possible(layout, &request->runs[i]))
            return false;
    return true;
}

static bool in_order(const struct ec_repairs *repairs, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) /* at most EC_PARTS_MAX * EC_RUNS_MAX */
        if (!ec_run_follows(&repairs->runs[i - 1], &repairs->runs[i]))
            return false;
    return true;
}

static void forget_parts(struct ec_repairs *repairs)
{
    repairs->parts = 0;
    repairs->parts_received = 0;
}

static void keep_part(struct ec_repairs *repairs, const struct ec_request *request)
{
    repairs->parts = request->parts;
    repairs->parts_received |= 1u << request->part;
    repairs->count = 0; /* their place is taken; they were all injected */
    if (request->part + 1u == request->parts)
        repairs->last_count = request->count;
    memcpy(repairs->runs + (size_t)request->part * EC_RUNS_MAX, request->runs,
           request->count * sizeof(request->runs[0]));
}

static void begin_round(struct ec_repairs *repairs, uint32_t count, uint32_t encodings)
{
    repairs->round++;
    repairs->count = count;
    repairs->encode_base = encodings;
    repairs->data = (struct ec_cursor){0};
    repairs->parity = (struct ec_cursor){0};
    repairs->encode = (struct ec_cursor){0};
    for (uint32_t i = 0; i < count; i++) /* at most EC_PARTS_MAX * EC_RUNS_MAX */
        repairs->chunks_left += repairs->runs[i].count;
}

enum ec_request_result ec_repairs_on_request(struct ec_repairs *repairs, const struct ec_layout *layout,
                                             const struct ec_request *request, uint32_t encodings)
{
    if (request->round < repairs->round)
        return EC_REQUEST_OLD;
    if (request->round == repairs->round)
        return EC_REQUEST_AGAIN;
    if (request->round != repairs->round + 1 || !ec_repairs_done(repairs) ||
        !runs_possible(layout, request))
        return EC_REQUEST_BAD;
    if (repairs->parts != request->parts) /* what was heard before was not of this request */
        forget_parts(repairs);
    keep_part(repairs, request);
    if (repairs->parts_received != (1u << repairs->parts) - 1)
        return EC_REQUEST_PART;
    uint32_t count = (repairs->parts - 1u) * EC_RUNS_MAX + repairs->last_count;
    bool possible = in_order(repairs, count);
    forget_parts(repairs);
    if (!possible)
        return EC_REQUEST_BAD;
    begin_round(repairs, count, encodings);
    return EC_REQUEST_COMPLETE;
}

/* ---- walking along it -------------------------------------------------------------------------------- */

/* The run at the cursor, once it stands on one of the kind that is wanted; NULL at the end. Each walk takes
 * at most as many steps as there are runs. */
static const struct ec_run *run_at(const struct ec_repairs *repairs, const struct ec_layout *layout,
                                   struct ec_cursor *cursor, bool parity)
{
    for (; cursor->run < repairs->count; cursor->run++)
        if (is_parity(layout, &repairs->runs[cursor->run]) == parity)
            return &repairs->runs[cursor->run];
    return NULL;
}

static void pass_run(struct ec_cursor *cursor)
{
    cursor->run++;
    cursor->number++;
    cursor->place = 0;
}

bool ec_repairs_done(const struct ec_repairs *repairs)
{
    return repairs->chunks_left == 0;
}

/* As many of the run's places as stand side by side: all when the group is a block of its own, else one. */
static void take_places(struct ec_repairs *repairs, struct ec_cursor *cursor, const struct ec_run *run,
                        uint32_t stride, uint32_t limit, struct ec_sending *sending)
{
    uint32_t left = run->count - cursor->place;
    sending->count = stride > 1 ? 1 : left < limit ? left : limit;
    assert(sending->count >= 1 && sending->count <= limit);
    assert(sending->count <= repairs->chunks_left);
    repairs->chunks_left -= sending->count;
    cursor->place += sending->count;
    if (cursor->place == run->count)
        pass_run(cursor);
}

static bool repairs_take_data(struct ec_repairs *repairs, const struct ec_layout *layout, uint32_t limit,
                              struct ec_sending *sending)
{
    const struct ec_run *run = run_at(repairs, layout, &repairs->data, false);
    if (run == NULL)
        return false;
    struct ec_group group = ec_layout_group(layout, run->group);
    uint32_t position = run->first + repairs->data.place;
    *sending = (struct ec_sending){.first = group.first_chunk + position * group.stride, .again = true};
    take_places(repairs, &repairs->data, run, group.stride, limit, sending);
    return true;
}

static bool repairs_take_parity(struct ec_repairs *repairs, const struct ec_layout *layout,
                                const struct ec_ready *ready, uint32_t limit, struct ec_sending *sending)
{
    const struct ec_run *run = run_at(repairs, layout, &repairs->parity, true);
    if (run == NULL || !ready->extra_open ||
        ready->encoded <= repairs->encode_base + repairs->parity.number)
        return false;
    struct ec_group group = ec_layout_group(layout, run->group);
    uint32_t row = run->first + repairs->parity.place - group.size;
    *sending = (struct ec_sending){.first = layout->chunks + group.first_place + row * group.stride,
                                   .parity = true};
    take_places(repairs, &repairs->parity, run, group.stride, limit, sending);
    return true;
}

bool ec_repairs_take(struct ec_repairs *repairs, const struct ec_layout *layout,
                     const struct ec_ready *ready, uint32_t limit, struct ec_sending *sending)
{
    if (limit == 0)
        return false;
    return repairs_take_data(repairs, layout, limit, sending) ||
           repairs_take_parity(repairs, layout, ready, limit, sending);
}

bool ec_repairs_encode(struct ec_repairs *repairs, const struct ec_layout *layout,
                       struct ec_encoding *encoding)
{
    const struct ec_run *run = run_at(repairs, layout, &repairs->encode, true);
    if (run == NULL)
        return false;
    struct ec_group group = ec_layout_group(layout, run->group);
    *encoding = (struct ec_encoding){run->group, run->first - group.size, run->count};
    pass_run(&repairs->encode);
    return true;
}

/* ---- sender ---------------------------------------------------------------------------------------- */

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
    sr_probe_on_feedback(&sender->probe, now);
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
    enum ec_request_result received = EC_REQUEST_BAD;
    bool next_round = request->round > sender->repairs.round;
    if (!too_early(sender, request))
        received = ec_repairs_on_request(&sender->repairs, &sender->layout, request, sender->encodings);
    if (received == EC_REQUEST_BAD) {
        sr_count(&sender->stats->bad_control);
        return;
    }
    sr_count(&sender->stats->nacks_received);
    sr_probe_on_feedback(&sender->probe, now);
    if (next_round)
        sender->settled = sender->injected; /* all of the round before has arrived, or is lost */
    bool last_part = request->part + 1u == request->parts; /* one answer is enough for all of them */
    if (received == EC_REQUEST_COMPLETE || (received == EC_REQUEST_AGAIN && last_part))
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
