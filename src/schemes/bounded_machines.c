/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded_scheme.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/scheme.h>
#include <longhaul/units.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/min_max.h"
#include "schemes/ec_layout.h"
#include "schemes/ec_receiver.h"
#include "schemes/ec_sender.h"
#include "schemes/sr_arrivals.h"
#include "schemes/sr_timers.h"
#include "wire/scheme_messages.h"

/* ---- params ---------------------------------------------------------------------------------------- */

#define ITEM_MAX 64u /* bytes of a value, and of what is passed on to the code */
#define NONE_US  UINT32_MAX
#define EXAMPLE  "deadline=20ms, or deadline=20ms,code=mds,k=32,m=2"

/* What a text says. */
struct reading {
    bool has_deadline;
    lh_time deadline_ns;
    enum ec_kind code;    /* 0: none */
    char split[ITEM_MAX]; /* "k=32,m=2": the code reads it */
};

static int take_deadline(const char *value, struct reading *reading)
{
    lh_time ns = LH_DEADLINE_AUTO;
    if (reading->has_deadline)
        return lh_fail(LH_EINVAL,
                       "bounded: the deadline is given twice, the second time as \"%s\"; give it once",
                       value);
    if (strcmp(value, "none") == 0) {
        ns = LH_DEADLINE_NONE;
    } else if (strcmp(value, "auto") != 0) {
        int error = lh_parse_time(value, &ns);
        if (error)
            return error;
        if (ns < LH_NS_PER_US || ns > BOUNDED_DEADLINE_MAX_NS)
            return lh_fail(LH_ERANGE,
                           "bounded: deadline \"%s\": out of range (1us to 60min, auto, or none)", value);
    }
    reading->has_deadline = true;
    reading->deadline_ns = ns;
    return 0;
}

static int take_code(const char *value, struct reading *reading)
{
    bool mds = strcmp(value, "mds") == 0;
    if (reading->code)
        return lh_fail(LH_EINVAL,
                       "bounded: the code is given twice, the second time as \"%s\"; give it once", value);
    if (!mds && strcmp(value, "xor") != 0)
        return lh_fail(LH_EINVAL, "bounded: code \"%s\": unknown (use mds or xor)", value);
    reading->code = mds ? EC_MDS : EC_XOR;
    return 0;
}

static int take_split(const char *item, struct reading *reading)
{
    size_t used = strlen(reading->split);
    int wrote =
        snprintf(reading->split + used, sizeof reading->split - used, "%s%s", used > 0 ? "," : "", item);
    if (wrote < 0 || (size_t)wrote >= sizeof reading->split - used)
        return lh_fail(LH_EINVAL, "bounded: \"%s\": too many parameters; example: " EXAMPLE, item);
    return 0;
}

static int take(const char *item, struct reading *reading)
{
    if (strncmp(item, "deadline=", 9) == 0)
        return take_deadline(item + 9, reading);
    if (strncmp(item, "code=", 5) == 0)
        return take_code(item + 5, reading);
    if (strncmp(item, "k=", 2) == 0 || strncmp(item, "m=", 2) == 0)
        return take_split(item, reading);
    return lh_fail(LH_EINVAL,
                   "bounded has no parameter \"%s\"; it has deadline, code, k and m, as in " EXAMPLE, item);
}

static int read_items(const char *text, struct reading *reading)
{
    while (*text != '\0') { /* each turn takes an item */
        char item[ITEM_MAX];
        size_t bytes = strcspn(text, ",");
        if (bytes >= sizeof item)
            return lh_fail(LH_EINVAL, "bounded: \"%.*s…\": parameter too long; example: " EXAMPLE,
                           (int)sizeof item, text);
        memcpy(item, text, bytes);
        item[bytes] = '\0';
        int error = take(item, reading);
        if (error)
            return error;
        text += bytes;
        if (*text == ',' && text[1] == '\0')
            return lh_fail(LH_EINVAL, "bounded: no parameter after the last comma (leave it out)");
        text += *text == ',';
    }
    return 0;
}

static int write_code(const struct reading *reading, uint8_t params[LH_SCHEME_PARAMS])
{
    uint8_t code[LH_SCHEME_PARAMS];
    if (!reading->code && reading->split[0] != '\0')
        return lh_fail(LH_EINVAL, "bounded: \"%s\": without effect without a code (add code=mds)",
                       reading->split);
    if (!reading->code)
        return 0;
    int error =
        reading->code == EC_MDS ? ec_mds_parse(reading->split, code) : ec_xor_parse(reading->split, code);
    if (error)
        return error;
    memcpy(params + 4, code, 3);
    return 0;
}

int bounded_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS])
{
    struct reading reading = {.deadline_ns = LH_DEADLINE_AUTO};
    int error = read_items(text, &reading);
    if (error)
        return error;
    memset(params, 0, LH_SCHEME_PARAMS);
    lh_put_be32(params, reading.deadline_ns == LH_DEADLINE_NONE
                            ? NONE_US
                            : (uint32_t)(reading.deadline_ns / LH_NS_PER_US));
    return write_code(&reading, params);
}

/* Of a code, as schemes/ec has them: all of a message in one block, and nobody asks for more. */
static void code_of(const uint8_t params[LH_SCHEME_PARAMS], uint8_t code[LH_SCHEME_PARAMS])
{
    memset(code, 0, LH_SCHEME_PARAMS);
    memcpy(code, params + 4, 3);
}

bool bounded_params_valid(const uint8_t params[LH_SCHEME_PARAMS])
{
    uint8_t code[LH_SCHEME_PARAMS];
    code_of(params, code);
    bool none = params[4] == 0 && params[5] == 0 && params[6] == 0;
    uint32_t us = lh_get_be32(params);
    bool possible = us == NONE_US || (uint64_t)us * LH_NS_PER_US <= BOUNDED_DEADLINE_MAX_NS;
    return params[7] == 0 && possible && (none || ec_mds_params_valid(code) || ec_xor_params_valid(code));
}

struct bounded_params bounded_params_of(const uint8_t params[LH_SCHEME_PARAMS])
{
    struct bounded_params read = {.deadline_ns = bounded_deadline(params), .codes = params[4] != 0};
    code_of(params, read.code);
    return read;
}

lh_time bounded_deadline(const uint8_t params[LH_SCHEME_PARAMS])
{
    uint32_t us = lh_get_be32(params);
    if (us == NONE_US)
        return LH_DEADLINE_NONE;
    return us == 0 ? LH_DEADLINE_AUTO : us * LH_NS_PER_US;
}

/* ---- coding ---------------------------------------------------------------------------------------- */

struct ec_layout bounded_layout_of(const struct bounded_params *params, uint32_t chunks)
{
    if (params->codes)
        return ec_layout_of(params->code, chunks);
    return (struct ec_layout){.chunks = chunks};
}

uint32_t bounded_layout_end(const struct ec_layout *layout)
{
    if (layout->places == 0)
        return layout->chunks;
    uint32_t last = (layout->groups - 1) / layout->block_groups * layout->block_groups;
    struct ec_block block = ec_layout_block(layout, last);
    return layout->chunks + block.first_place + block.parity;
}

static uint32_t transfer_chunks_max(const uint8_t params[LH_SCHEME_PARAMS], uint32_t slot_chunks)
{
    struct bounded_params read = bounded_params_of(params);
    return read.codes ? ec_transfer_chunks_max(read.code, slot_chunks) : slot_chunks;
}

static uint32_t extra_chunks(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    struct bounded_params read = bounded_params_of(params);
    return read.codes ? ec_extra_chunks(read.code, chunks) : 0;
}

static uint32_t groups(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks)
{
    struct bounded_params read = bounded_params_of(params);
    return read.codes ? ec_groups(read.code, chunks) : 0;
}

/* The same memory, as schemes/ec sees it. */
static struct lh_coding coded(const struct lh_coding *coding)
{
    struct lh_coding of = *coding;
    struct bounded_params read = bounded_params_of(coding->params);
    assert(read.codes);
    memcpy(of.params, read.code, sizeof of.params);
    return of;
}

static void encode(const struct lh_coding *coding, uint32_t group, uint32_t first_row, uint32_t rows)
{
    struct lh_coding of = coded(coding);
    ec_coding.encode(&of, group, first_row, rows);
}

static uint32_t decode(const struct lh_coding *coding, uint32_t group, const uint8_t *chunk_bitmap,
                       const uint8_t *extra_bitmap)
{
    struct lh_coding of = coded(coding);
    struct ec_layout layout = ec_layout_of(of.params, of.chunks);
    struct ec_bitmaps bitmaps = {chunk_bitmap, extra_bitmap};
    return ec_needs_group_met(&layout, &bitmaps, group)
               ? ec_coding.decode(&of, group, chunk_bitmap, extra_bitmap)
               : 0;
}

/* Of a group that is met. */
static uint32_t mark_group(const struct ec_group *group, const uint8_t *chunk_bitmap, uint8_t *recovered)
{
    uint32_t count = 0;
    for (uint32_t p = 0; p < group->size; p++) { /* at most k */
        uint32_t chunk = group->first_chunk + p * group->stride;
        recovered[chunk] = chunk_bitmap[chunk] == 0;
        count += recovered[chunk];
    }
    return count;
}

static uint32_t recoverable(const uint8_t params[LH_SCHEME_PARAMS], uint32_t chunks,
                            const uint8_t *chunk_bitmap, const uint8_t *extra_bitmap, uint8_t *recovered)
{
    struct bounded_params read = bounded_params_of(params);
    struct ec_layout layout = bounded_layout_of(&read, chunks);
    struct ec_bitmaps bitmaps = {chunk_bitmap, extra_bitmap};
    uint32_t count = 0;
    memset(recovered, 0, chunks);
    for (uint32_t g = 0; g < layout.groups; g++) {
        struct ec_group group = ec_layout_group(&layout, g);
        if (ec_needs_group_met(&layout, &bitmaps, g))
            count += mark_group(&group, chunk_bitmap, recovered);
    }
    return count;
}

const struct lh_scheme_coding bounded_coding = {
    .transfer_chunks_max = transfer_chunks_max,
    .extra_chunks = extra_chunks,
    .groups = groups,
    .encode = encode,
    .decode = decode,
    .recoverable = recoverable,
};

/* ---- sender ---------------------------------------------------------------------------------------- */

#define ENCODINGS_AHEAD 32u /* as schemes/ec */
/* END is retransmitted close behind the last packet, for a burst of losses that took both would cost the
 * deadline: a few times, or once for each ENDS_SHARE chunks. Then evenly, then at doubling intervals, for the
 * receiver may be gone. Fractions are of an overdue round trip. */
#define ENDS_CLOSE_MIN 4u
#define ENDS_CLOSE_MAX 32u
#define ENDS_SHARE     16u
#define CLOSE_FRACTION 128u
#define ENDS_EVEN      64u
#define EVEN_FRACTION  8u
#define END_DOUBLINGS  10u
#define END_MIN_NS     (20 * LH_NS_PER_US) /* the worker has other work, too */

static_assert(ENCODINGS_AHEAD <= LH_ENCODES_MAX, "as many as may be pending");

/* What was injected up to a moment. */
struct look_back {
    lh_time at_ns;
    uint32_t place;
};

struct bounded_sender {
    struct bounded_params params;
    struct ec_layout layout;
    struct lh_stats *stats;
    struct ec_opening opening;
    lh_time started_ns;
    uint32_t encodings; /* given out */
    uint32_t injected;  /* chunks */
    uint32_t place;     /* one past the last that was injected, in their order */
    uint32_t passed;    /* places before that are not in flight */
    struct look_back last;
    bool given_up;
    bool sent;     /* LH_ACTION_SENT was said */
    uint32_t ends; /* that were sent */
    lh_time end_at;
};

size_t bounded_sender_bytes(uint32_t chunks_max)
{
    (void)chunks_max;
    return sizeof(struct bounded_sender);
}

void bounded_sender_start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    struct bounded_sender *sender = state;
    *sender = (struct bounded_sender){.params = bounded_params_of(transfer->params),
                                      .stats = transfer->stats,
                                      .started_ns = now,
                                      .last = {now, 0}};
    sender->layout = bounded_layout_of(&sender->params, transfer->chunks);
    ec_opening_init(&sender->opening, &sender->layout);
}

/* ---- what the receiver says -------------------------------------------------------------------------- */

void bounded_sender_on_message(void *state, const uint8_t *data, size_t bytes,
                               const struct lh_sender_view *view)
{
    struct bounded_sender *sender = state;
    struct bounded_message message;
    (void)view;
    if (bounded_message_decode(data, bytes, &message) != 0 || message.kind != BOUNDED_ACK ||
        message.place > sender->place) {
        sr_count(&sender->stats->bad_control);
        return;
    }
    sr_count(&sender->stats->acks_received);
    if (message.place > sender->passed)
        sender->passed = message.place;
}

static void on_passed_expired(struct bounded_sender *sender, lh_time now)
{
    if (sender->last.place > sender->passed)
        sender->passed = sender->last.place;
    sender->last = (struct look_back){now, sender->place};
}

static uint32_t in_flight(const struct bounded_sender *sender)
{
    assert(sender->passed <= sender->place);
    uint32_t places = sender->place - sender->passed; /* some are left out where parity is not sent */
    return places < sender->injected ? places : sender->injected;
}

/* ---- what is done next ------------------------------------------------------------------------------- */

static bool all_injected(const struct bounded_sender *sender)
{
    return ec_opening_done(&sender->opening, &sender->layout);
}

static lh_time give_up_expiry(const struct bounded_sender *sender, const struct sr_timing *timing)
{
    lh_time deadline_ns = sender->params.deadline_ns;
    if (deadline_ns == LH_DEADLINE_AUTO || deadline_ns == LH_DEADLINE_NONE || sender->sent)
        return LH_TIME_NEVER;
    return sr_after(sender->started_ns, deadline_ns + timing->overdue_ns);
}

/* At most LH_ACTIONS_MAX stretches. */
static void inject(struct bounded_sender *sender, const struct lh_sender_view *view,
                   struct lh_actions *actions)
{
    struct ec_ready ready = {view->extra_open, view->encoded};
    uint32_t budget = view->budget_chunks;
    struct ec_sending sending;
    while (actions->count < LH_ACTIONS_MAX &&
           ec_opening_take(&sender->opening, &sender->layout, &ready, budget, &sending)) {
        struct lh_action *action = lh_action_add(actions, LH_ACTION_SEND_CHUNKS);
        assert(sending.count >= 1 && sending.count <= budget);
        action->what.chunks.first = sending.first;
        action->what.chunks.count = sending.count;
        action->what.chunks.again = false;
        budget -= sending.count;
        sender->injected += sending.count;
        if (sending.first + sending.count > sender->place)
            sender->place = sending.first + sending.count;
        if (sending.parity)
            sr_count_many(&sender->stats->parity_chunks_sent, sending.count);
    }
}

static void sender_encode(struct bounded_sender *sender, const struct lh_sender_view *view,
                          struct lh_actions *actions)
{
    struct ec_encoding encoding;
    while (actions->count < LH_ACTIONS_MAX && sender->encodings - view->encoded < ENCODINGS_AHEAD &&
           ec_opening_encode(&sender->opening, &sender->layout, &encoding)) {
        struct lh_action *action = lh_action_add(actions, LH_ACTION_ENCODE);
        action->what.encode.group = encoding.group;
        action->what.encode.first_row = encoding.first_row;
        action->what.encode.rows = encoding.rows;
        sender->encodings++;
    }
}

static uint32_t ends_close(const struct bounded_sender *sender)
{
    return (uint32_t)lh_min(lh_max(sender->layout.chunks / ENDS_SHARE, ENDS_CLOSE_MIN), ENDS_CLOSE_MAX);
}

/* Until the next END. */
static lh_time end_interval(const struct bounded_sender *sender, const struct sr_timing *timing)
{
    uint32_t doublings = (uint32_t)lh_sub_sat(sender->ends, ENDS_EVEN);
    uint32_t fraction = sender->ends < ends_close(sender) ? CLOSE_FRACTION : EVEN_FRACTION;
    return lh_max(timing->overdue_ns / fraction, END_MIN_NS) << doublings;
}

static void send_end(struct bounded_sender *sender, const struct sr_timing *timing, lh_time now,
                     struct lh_actions *actions)
{
    struct lh_action *action = lh_action_add(actions, LH_ACTION_SEND_MESSAGE);
    if (action == NULL)
        return;
    const struct bounded_message end = {BOUNDED_END, sender->place};
    action->what.message.bytes = (uint32_t)bounded_message_encode(&end, action->what.message.data);
    if (sender->ends > 0)
        sr_count(&sender->stats->probes_sent);
    sender->end_at = sr_after(now, end_interval(sender, timing));
    if (sender->ends < ENDS_EVEN + END_DOUBLINGS)
        sender->ends++;
}

/* All is injected, or given up; what is being encoded is waited for. */
static void end(struct bounded_sender *sender, const struct lh_sender_view *view,
                const struct sr_timing *timing, struct lh_actions *actions)
{
    if (!sender->sent && sender->encodings == view->encoded)
        sender->sent = lh_action_add(actions, LH_ACTION_SENT) != NULL;
    if (sender->sent && sender->end_at <= view->now)
        send_end(sender, timing, view->now, actions);
}

void bounded_sender_step(void *state, const struct lh_sender_view *view, struct lh_actions *actions)
{
    struct bounded_sender *sender = state;
    struct sr_timing timing = sr_timing_of(&view->path);
    sender->given_up |= view->withdrawn || give_up_expiry(sender, &timing) <= view->now;
    if (sr_after(sender->last.at_ns, timing.overdue_ns) <= view->now)
        on_passed_expired(sender, view->now);
    if (!sender->given_up) {
        inject(sender, view, actions);
        sender_encode(sender, view, actions);
    }
    if (sender->given_up || all_injected(sender))
        end(sender, view, &timing, actions);
    actions->in_flight_chunks = in_flight(sender);
    lh_time next = sender->given_up ? LH_TIME_NEVER : give_up_expiry(sender, &timing);
    if (in_flight(sender) > 0)
        next = lh_earlier(next, sr_after(sender->last.at_ns, timing.overdue_ns));
    actions->next_ns = sender->sent ? lh_earlier(next, sender->end_at) : next;
}

/* ---- receiver -------------------------------------------------------------------------------------- */

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
