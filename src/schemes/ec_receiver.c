/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec_receiver.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <longhaul/scheme.h>

#include "base/min_max.h"
#include "schemes/ec_layout.h"
#include "schemes/sr_arrivals.h"
#include "schemes/sr_timers.h"
#include "wire/scheme_messages.h"

/* ---- asking ---------------------------------------------------------------------------------------- */

#define REPEAT_SPAN_MAX 8u  /* overdue times: a sender that is gone gets few */
#define HASTE_SHARE     16u /* more is lost than one in so many: of several parts one is, again and again */

static uint32_t parts(const struct ec_asking *asking)
{
    return (asking->count + EC_RUNS_MAX - 1) / EC_RUNS_MAX;
}

void ec_asking_init(struct ec_asking *asking)
{
    asking->round = 0;
    asking->received = true; /* nobody has to ask for round 0 */
    asking->end_ns = LH_TIME_NEVER;
    asking->first_part = 0;
    asking->parts_sent = 0;
    asking->repeat_ns = LH_TIME_NEVER;
    asking->repeat_span_ns = 0;
    asking->hasty_until_ns = 0;
    asking->count = 0;
    sr_backoff_init(&asking->backoff);
}

/* A short queue drops the end of a burst, each time: the part that was sent last now goes first. */
static void send_again(struct ec_asking *asking)
{
    asking->first_part = (asking->first_part + parts(asking) - 1) % parts(asking);
    asking->parts_sent = 0;
}

bool ec_asking_on_mark(struct ec_asking *asking, const struct ec_mark *mark, uint32_t arrived, lh_time now)
{
    if (mark->round > asking->round)
        return false;
    sr_backoff_on_feedback(&asking->backoff, arrived);
    if (mark->round < asking->round) {
        if (!asking->received && (mark->flags & EC_FLAG_PROBE))
            send_again(asking);
        return true;
    }
    asking->received = true;
    asking->repeat_ns = LH_TIME_NEVER;
    asking->parts_sent = parts(asking);
    if ((mark->flags & EC_FLAG_END) && asking->end_ns == LH_TIME_NEVER)
        asking->end_ns = now;
    return true;
}

/* beta * RTT. Spans are at most 2^56 ns (sr_timing.c), so nothing wraps. */
static lh_time beta_span(uint32_t beta_hundredths, const struct sr_timing *timing)
{
    lh_time rtt = timing->rtt_ns;
    return rtt / 100 * beta_hundredths + rtt % 100 * beta_hundredths / 100;
}

lh_time ec_asking_fallback_expiry(const struct ec_asking *asking, uint32_t beta_hundredths,
                                  lh_time last_arrival_ns, const struct sr_timing *timing)
{
    if (asking->end_ns == LH_TIME_NEVER)
        return LH_TIME_NEVER;
    lh_time span = timing->window_ns;
    if (asking->round == 0)
        span = lh_max(span, beta_span(beta_hundredths, timing));
    lh_time expiry = sr_after(asking->end_ns, span);
    if (last_arrival_ns != LH_TIME_NEVER)
        expiry = lh_max(expiry, sr_after(last_arrival_ns, timing->window_ns));
    return lh_max(expiry, sr_backoff_expiry(&asking->backoff, timing));
}

static bool is_lossy(const struct ec_path_seen *seen)
{
    return seen->injected > seen->arrived && seen->injected - seen->arrived > seen->injected / HASTE_SHARE;
}

void ec_asking_on_fallback_expired(struct ec_asking *asking, uint32_t count,
                                   const struct ec_path_seen *seen, const struct sr_timing *timing,
                                   lh_time now)
{
    assert(count >= 1 && count <= EC_PARTS_MAX * EC_RUNS_MAX);
    assert(asking->received && asking->end_ns <= now && asking->round < UINT32_MAX);
    sr_backoff_on_repair(&asking->backoff, timing, now);
    asking->round++;
    asking->received = false;
    asking->end_ns = LH_TIME_NEVER;
    asking->count = count;
    asking->first_part = 0;
    asking->parts_sent = 0;
    asking->hasty_until_ns = is_lossy(seen) ? sr_after(now, timing->rtt_ns) : now;
    asking->repeat_span_ns = timing->window_ns;
    asking->repeat_ns = sr_after(now, timing->window_ns);
}

lh_time ec_asking_repeat_expiry(const struct ec_asking *asking)
{
    return asking->repeat_ns;
}

void ec_asking_on_repeat_expired(struct ec_asking *asking, const struct sr_timing *timing, lh_time now)
{
    assert(!asking->received && asking->repeat_ns <= now);
    if (now >= asking->hasty_until_ns)
        asking->repeat_span_ns = lh_min(2 * asking->repeat_span_ns, REPEAT_SPAN_MAX * timing->overdue_ns);
    asking->repeat_ns = sr_after(now, asking->repeat_span_ns);
    send_again(asking);
}

bool ec_asking_next(const struct ec_asking *asking, struct ec_request *request)
{
    if (asking->parts_sent >= parts(asking))
        return false;
    uint32_t part = (asking->first_part + asking->parts_sent) % parts(asking);
    uint32_t first = part * EC_RUNS_MAX;
    uint32_t left = asking->count - first;
    request->round = asking->round;
    request->part = (uint8_t)part;
    request->parts = (uint8_t)parts(asking);
    request->count = (uint8_t)(left < EC_RUNS_MAX ? left : EC_RUNS_MAX);
    memcpy(request->runs, asking->runs + first, request->count * sizeof(request->runs[0]));
    return true;
}

void ec_asking_on_sent(struct ec_asking *asking)
{
    assert(asking->parts_sent < parts(asking));
    asking->parts_sent++;
}

/* ---- margin ---------------------------------------------------------------------------------------- */

#define FAILURE  1e-6
#define LOSS_MIN (1.0 / 1024)
#define LOSS_MAX 0.5

static double loss_seen(uint32_t injected, uint32_t arrived)
{
    if (arrived >= injected)
        return LOSS_MIN;
    double loss = (double)(injected - arrived) / injected;
    if (loss < LOSS_MIN)
        return LOSS_MIN;
    return loss > LOSS_MAX ? LOSS_MAX : loss;
}

uint32_t ec_margin(uint32_t missing_work, uint32_t injected, uint32_t arrived)
{
    assert(missing_work >= 1 && missing_work <= 255);
    double loss = loss_seen(injected, arrived);
    double exactly = 1; /* the chance that the last that is needed is the (lacking + margin)-th */
    for (uint32_t i = 0; i < missing_work; i++)
        exactly *= 1 - loss;
    double enough = exactly;
    uint32_t margin = 0;
    while (1 - enough > FAILURE && margin < EC_MARGIN_MAX) {
        exactly *= loss * (missing_work + margin) / (margin + 1);
        enough += exactly;
        margin++;
    }
    return margin;
}

/* ---- needs ----------------------------------------------------------------------------------------- */

void ec_needs_init(struct ec_needs *needs, uint32_t chunks, void *memory)
{
    needs->first_unmet = 0;
    needs->asked = memory;
    memset(needs->asked, 0, ec_needs_bytes(chunks));
}

/* One group as it is looked at. */
struct look {
    const struct ec_layout *layout;
    const struct ec_bitmaps *bitmaps;
    struct ec_group group;
    uint32_t index;
};

static bool is_set(const uint8_t *bitmap, uint32_t at)
{
    return bitmap != NULL && __atomic_load_n(&bitmap[at], __ATOMIC_RELAXED) != 0;
}

static bool has_data(const struct look *look, uint32_t position)
{
    return is_set(look->bitmaps->chunks, look->group.first_chunk + position * look->group.stride);
}

static bool has_row(const struct look *look, uint32_t row)
{
    return is_set(look->bitmaps->extra, look->group.first_place + row * look->group.stride);
}

static uint32_t data_there(const struct look *look)
{
    uint32_t there = 0;
    for (uint32_t p = 0; p < look->group.size; p++) /* at most k */
        there += has_data(look, p);
    return there;
}

static uint32_t rows_there(const struct look *look)
{
    uint32_t there = 0;
    for (uint32_t r = 0; r < ec_group_rows_max(look->layout, &look->group); r++)
        there += has_row(look, r);
    return there;
}

/* Whether the class of a position can be decoded. A message of one chunk has no classes. */
static bool class_met(const struct look *look, uint32_t position)
{
    uint32_t rows = look->group.rows;
    if (rows == 0)
        return has_data(look, position);
    uint32_t missing = !has_row(look, position % rows);
    for (uint32_t p = position % rows; p < look->group.size; p += rows)
        missing += !has_data(look, p);
    return missing <= 1;
}

static bool classes_met(const struct look *look)
{
    uint32_t classes = look->group.rows == 0 ? 1 : look->group.rows;
    for (uint32_t c = 0; c < classes; c++)
        if (!class_met(look, c))
            return false;
    return true;
}

static bool fell_back(const struct ec_needs *needs, const struct look *look)
{
    return look->layout->params.fallback == EC_FALLBACK_SR && needs->asked[look->index] != 0;
}

static bool decodable(const struct look *look)
{
    if (look->layout->params.kind == EC_XOR)
        return classes_met(look);
    return data_there(look) + rows_there(look) >= look->group.size;
}

static bool group_met(const struct ec_needs *needs, const struct look *look)
{
    return fell_back(needs, look) ? data_there(look) == look->group.size : decodable(look);
}

static struct look look_at(const struct ec_layout *layout, const struct ec_bitmaps *bitmaps, uint32_t group)
{
    return (struct look){layout, bitmaps, ec_layout_group(layout, group), group};
}

bool ec_needs_group_met(const struct ec_layout *layout, const struct ec_bitmaps *bitmaps, uint32_t group)
{
    struct look look = look_at(layout, bitmaps, group);
    return decodable(&look);
}

bool ec_needs_met(struct ec_needs *needs, const struct ec_layout *layout, const struct ec_bitmaps *bitmaps)
{
    for (; needs->first_unmet < layout->groups; needs->first_unmet++) {
        struct look look = look_at(layout, bitmaps, needs->first_unmet);
        if (!group_met(needs, &look))
            return false;
    }
    return true;
}

/* ---- what is asked for ------------------------------------------------------------------------------- */

struct list {
    struct ec_run *runs;
    uint32_t count;
    uint32_t room;
    bool full;
};

static void add_place(struct list *list, uint32_t group, uint32_t place)
{
    struct ec_run *last = list->count > 0 ? &list->runs[list->count - 1] : NULL;
    assert(place < EC_ROWS_MAX);
    if (last != NULL && last->group == group && last->first + last->count == (int)place) {
        last->count++;
    } else if (list->count == list->room) {
        list->full = true;
    } else {
        list->runs[list->count++] = (struct ec_run){group, (uint8_t)place, 1};
    }
}

static void ask_for_missing(const struct look *look, uint32_t maximum, struct list *list)
{
    for (uint32_t p = 0; p < look->group.size && maximum > 0; p++)
        if (!has_data(look, p)) {
            add_place(list, look->index, p);
            maximum--;
        }
}

static void ask_for_all(const struct look *look, struct list *list)
{
    for (uint32_t p = 0; p < look->group.size; p++)
        add_place(list, look->index, p);
}

static void ask_for_classes(const struct look *look, struct list *list)
{
    for (uint32_t p = 0; p < look->group.size; p++)
        if (!has_data(look, p) && !class_met(look, p))
            add_place(list, look->index, p);
}

/* Returns the first row that was never asked for, from now on. */
static uint32_t ask_for_more(const struct look *look, uint32_t fresh, const struct ec_path_seen *seen,
                             struct list *list)
{
    uint32_t data = data_there(look);
    uint32_t there = data + rows_there(look);
    if (there >= look->group.size) /* it has come since it was looked at */
        return fresh;
    uint32_t missing_work = look->group.size - there;
    uint32_t wanted = missing_work + ec_margin(missing_work, seen->injected, seen->arrived);
    uint32_t left = ec_group_rows_max(look->layout, &look->group) - fresh;
    uint32_t rows = wanted < left ? wanted : left;
    ask_for_missing(look, wanted - rows, list);
    for (uint32_t r = fresh; r < fresh + rows; r++)
        add_place(list, look->index, look->group.size + r);
    return fresh + rows;
}

/* Returns what needs->asked says from now on. */
static uint8_t ask_for_group(const struct ec_needs *needs, const struct look *look,
                             const struct ec_path_seen *seen, struct list *list)
{
    uint8_t asked = needs->asked[look->index];
    if (look->layout->params.fallback == EC_FALLBACK_SR) {
        if (asked != 0)
            ask_for_missing(look, look->group.size, list);
        else
            ask_for_all(look, list);
        return 1;
    }
    if (look->layout->params.kind == EC_XOR) {
        ask_for_classes(look, list);
        return 1;
    }
    uint32_t fresh = asked != 0 ? asked - 1u : look->group.rows;
    uint32_t next = ask_for_more(look, fresh, seen, list);
    assert(next < UINT8_MAX);
    return (uint8_t)(next + 1);
}

uint32_t ec_needs_ask(struct ec_needs *needs, const struct ec_layout *layout,
                      const struct ec_bitmaps *bitmaps, const struct ec_path_seen *seen,
                      struct ec_run *runs, uint32_t room, uint32_t *failed)
{
    assert(room >= 128); /* every second place of a code, at most */
    struct list list = {.runs = runs, .room = room};
    for (uint32_t group = needs->first_unmet; group < layout->groups; group++) {
        struct look look = look_at(layout, bitmaps, group);
        if (group_met(needs, &look))
            continue;
        uint32_t before = list.count;
        uint8_t asked = ask_for_group(needs, &look, seen, &list);
        if (list.full) { /* half a group is of no use: next time */
            list.count = before;
            break;
        }
        if (list.count == before)
            continue;
        *failed += needs->asked[group] == 0;
        needs->asked[group] = asked;
    }
    assert(list.count <= room);
    return list.count;
}

/* ---- receiver -------------------------------------------------------------------------------------- */

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

static void receiver_look(struct ec_receiver *receiver, const struct lh_receiver_view *view)
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
    ec_asking_on_fallback_expired(asking, count, &seen, timing, view->now);
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
    receiver_look(receiver, view);
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
        ec_asking_on_repeat_expired(&receiver->asking, &timing, view->now);
    write_request(receiver, actions);
    if (ack_due(receiver, view, &timing))
        write_ack(receiver, view->now, actions);
    actions->next_ns = next_expiry(receiver, view, &timing);
}
