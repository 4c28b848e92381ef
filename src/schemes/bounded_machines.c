/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded/sender.h"

#include <assert.h>

#include "base/least.h"
#include "schemes/bounded/coding.h"
#include "schemes/ec/opening.h"
#include "schemes/sr/timing.h"
#include "wire/bounded_completion.h"

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
#define END_LEAST_NS   (20 * LH_NS_PER_US) /* the worker has other work, too */

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

static void encode(struct bounded_sender *sender, const struct lh_sender_view *view,
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
    return (uint32_t)lh_least(lh_most(sender->layout.chunks / ENDS_SHARE, ENDS_CLOSE_MIN), ENDS_CLOSE_MAX);
}

/* Until the next END. */
static lh_time end_interval(const struct bounded_sender *sender, const struct sr_timing *timing)
{
    uint32_t doublings = (uint32_t)lh_left(sender->ends, ENDS_EVEN);
    uint32_t fraction = sender->ends < ends_close(sender) ? CLOSE_FRACTION : EVEN_FRACTION;
    return lh_most(timing->overdue_ns / fraction, END_LEAST_NS) << doublings;
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
        encode(sender, view, actions);
    }
    if (sender->given_up || all_injected(sender))
        end(sender, view, &timing, actions);
    actions->in_flight_chunks = in_flight(sender);
    lh_time next = sender->given_up ? LH_TIME_NEVER : give_up_expiry(sender, &timing);
    if (in_flight(sender) > 0)
        next = lh_earlier(next, sr_after(sender->last.at_ns, timing.overdue_ns));
    actions->next_ns = sender->sent ? lh_earlier(next, sender->end_at) : next;
}
