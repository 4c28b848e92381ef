/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr_scheme.h"

#include <assert.h>
#include <string.h>

#include <longhaul/scheme.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "schemes/sr_arrivals.h"
#include "schemes/sr_ledger.h"
#include "schemes/sr_timers.h"
#include "wire/scheme_messages.h"

/* ---- params ---------------------------------------------------------------------------------------- */

#define SR_ALPHA_DEFAULT_HUNDREDTHS 200u   /* RTO = 3 RTT, the paper's */
#define SR_ALPHA_MIN_HUNDREDTHS     25u    /* the receiver may take a quarter round trip to acknowledge */
#define SR_ALPHA_MAX_HUNDREDTHS     10000u /* RTO = 101 RTT */

static bool all_zero(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static bool alpha_possible(uint64_t hundredths)
{
    return hundredths >= SR_ALPHA_MIN_HUNDREDTHS && hundredths <= SR_ALPHA_MAX_HUNDREDTHS;
}

static int parse_alpha(const char *text, uint64_t *hundredths)
{
    static const char key[] = "alpha=";
    struct lh_decimal decimal;
    if (strncmp(text, key, sizeof(key) - 1) != 0)
        return lh_fail(LH_EINVAL, "sr-rto has no parameter \"%s\"; it has alpha, as in alpha=2", text);
    const char *number = text + sizeof(key) - 1;
    const char *end = number;
    if (lh_decimal_read(&end, &decimal) != 0 || *end != '\0' ||
        lh_decimal_scale(&decimal, 100, hundredths) != 0 || !alpha_possible(*hundredths))
        return lh_fail(LH_EINVAL, "alpha \"%s\" is not a number from 0.25 to 100, as in alpha=2", number);
    return 0;
}

int sr_rto_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS])
{
    uint64_t hundredths = SR_ALPHA_DEFAULT_HUNDREDTHS;
    if (*text != '\0') {
        int failed = parse_alpha(text, &hundredths);
        if (failed)
            return failed;
    }
    memset(params, 0, LH_SCHEME_PARAMS);
    lh_put_be16(params, (uint16_t)hundredths);
    return 0;
}

uint32_t sr_rto_alpha_hundredths(const uint8_t params[LH_SCHEME_PARAMS])
{
    return lh_get_be16(params);
}

bool sr_rto_params_valid(const uint8_t params[LH_SCHEME_PARAMS])
{
    return alpha_possible(sr_rto_alpha_hundredths(params)) && all_zero(params + 2, LH_SCHEME_PARAMS - 2);
}

int sr_nack_parse(const char *text, uint8_t params[LH_SCHEME_PARAMS])
{
    if (*text != '\0')
        return lh_fail(LH_EINVAL, "sr-nack has no parameters, but \"%s\" was given; leave it out", text);
    memset(params, 0, LH_SCHEME_PARAMS);
    return 0;
}

bool sr_nack_params_valid(const uint8_t params[LH_SCHEME_PARAMS])
{
    return all_zero(params, LH_SCHEME_PARAMS);
}

/* ---- sender ---------------------------------------------------------------------------------------- */

struct sr_sender {
    struct sr_ledger ledger; /* its arrays follow this struct */
    struct lh_stats *stats;
    bool nack;
    struct sr_probe probe;
    struct sr_backoff backoff; /* sr-nack only */
    struct sr_marker marker;   /* sr-rto only numbers its probes with it */
    struct sr_rto rto;         /* sr-rto only */
};

static_assert(sizeof(struct sr_sender) % sizeof(uint64_t) == 0, "the ledger's arrays follow, aligned");

size_t sr_sender_bytes(uint32_t chunks_max)
{
    return sizeof(struct sr_sender) + sr_ledger_bytes(chunks_max);
}

static struct sr_sender *sender_start(void *state, const struct lh_transfer *transfer)
{
    assert(transfer->chunks <= SR_CHUNKS_MAX);
    struct sr_sender *sender = state;
    sender->stats = transfer->stats;
    sr_ledger_init(&sender->ledger, transfer->chunks, sender + 1);
    sr_probe_init(&sender->probe);
    sr_backoff_init(&sender->backoff);
    sr_marker_init(&sender->marker);
    return sender;
}

void sr_rto_sender_start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    (void)now;
    struct sr_sender *sender = sender_start(state, transfer);
    assert(sr_rto_params_valid(transfer->params));
    sender->nack = false;
    sr_rto_init(&sender->rto, sr_rto_alpha_hundredths(transfer->params));
}

void sr_nack_sender_start(void *state, const struct lh_transfer *transfer, lh_time now)
{
    (void)now;
    struct sr_sender *sender = sender_start(state, transfer);
    sender->nack = true;
}

/* ---- what the receiver says -------------------------------------------------------------------------- */

static void on_ack(struct sr_sender *sender, const struct sr_ack *ack, lh_time now)
{
    struct sr_ledger *ledger = &sender->ledger;
    sr_count(ack->flags & SR_FLAG_NACK ? &sender->stats->nacks_received : &sender->stats->acks_received);
    sr_probe_on_feedback(&sender->probe, now);
    sr_report_arrivals(ledger, ack);
    sr_backoff_on_feedback(&sender->backoff, ack->arrived);
    if (!sender->nack)
        return;
    sr_marker_on_settled(&sender->marker, ack->mark);
    sr_report_losses(ledger, ack);
}

void sr_sender_on_message(void *state, const uint8_t *data, size_t bytes, const struct lh_sender_view *view)
{
    struct sr_sender *sender = state;
    struct sr_ack ack;
    if (sr_ack_decode(data, bytes, &ack) != 0 ||
        !sr_report_possible(&sender->ledger, &sender->marker, &ack)) {
        sr_count(&sender->stats->bad_control);
        return;
    }
    on_ack(sender, &ack, view->now);
}

/* ---- what is done next ------------------------------------------------------------------------------- */

static uint32_t stamp_now(struct sr_sender *sender, const struct sr_timing *timing, lh_time now)
{
    return sender->nack ? sr_marker_stamp(&sender->marker) : sr_rto_stamp(&sender->rto, timing, now);
}

static void on_injection(struct sr_sender *sender, struct sr_run run, bool again,
                         const struct sr_timing *timing, lh_time now)
{
    if (!again)
        sr_probe_on_injection(&sender->probe, now);
    else if (sender->nack)
        sr_backoff_on_repair(&sender->backoff, timing, now);
    if (sender->nack)
        sr_marker_on_injection(&sender->marker, again, now);
    else
        sr_rto_on_injection(&sender->rto, run, now);
}

/* Repairs first: the receiver waits for them longest. At most LH_ACTIONS_MAX runs. */
static void inject(struct sr_sender *sender, const struct lh_sender_view *view,
                   const struct sr_timing *timing, struct lh_actions *actions)
{
    struct sr_ledger *ledger = &sender->ledger;
    uint32_t budget = view->budget_chunks;
    bool repairs = sr_backoff_expiry(&sender->backoff, timing) <= view->now;
    while (budget > 0 && actions->count < LH_ACTIONS_MAX &&
           ((repairs && ledger->lost > 0) || !sr_ledger_all_sent(ledger))) {
        bool again = repairs && ledger->lost > 0;
        uint32_t stamp = stamp_now(sender, timing, view->now);
        struct sr_run run;
        bool taken = again ? sr_ledger_take_lost(ledger, budget, stamp, &run)
                           : sr_ledger_take_new(ledger, budget, stamp, &run);
        assert(taken && run.count <= budget);
        struct lh_action *action = lh_action_add(actions, LH_ACTION_SEND_CHUNKS);
        action->what.chunks.first = run.first;
        action->what.chunks.count = run.count;
        action->what.chunks.again = again;
        on_injection(sender, run, again, timing, view->now);
        budget -= run.count;
    }
}

static void cover(struct sr_sender *sender, const struct sr_timing *timing, lh_time now,
                  struct lh_actions *actions)
{
    struct sr_marker *marker = &sender->marker;
    if (sr_mark_send(&sender->ledger, sr_marker_stamp(marker), 0, actions))
        sr_marker_on_cover(marker, sr_ledger_all_sent(&sender->ledger), timing, now);
}

static void on_repeat_expired(struct sr_sender *sender, const struct sr_timing *timing, lh_time now,
                              struct lh_actions *actions)
{
    if (sr_mark_send(&sender->ledger, sender->marker.mark, 0, actions))
        sr_marker_on_repeat_expired(&sender->marker, timing, now);
}

/* A probe is a MARK too: it covers what is uncovered. sr-rto has no other MARKs, and numbers them all the
 * same. */
static void on_probe_expired(struct sr_sender *sender, const struct sr_timing *timing, lh_time now,
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

static void nack_timers(struct sr_sender *sender, const struct sr_timing *timing, lh_time now,
                        struct lh_actions *actions)
{
    const struct sr_ledger *ledger = &sender->ledger;
    struct sr_marker *marker = &sender->marker;
    if (sr_marker_wants_cover(marker, ledger->lost > 0, sr_ledger_all_sent(ledger)))
        cover(sender, timing, now, actions);
    if (sr_marker_repeat_expiry(marker) <= now)
        on_repeat_expired(sender, timing, now, actions);
}

static lh_time next_expiry(const struct sr_sender *sender, const struct sr_timing *timing, lh_time now)
{
    lh_time next = sr_probe_expiry(&sender->probe, timing);
    lh_time ready = sr_backoff_expiry(&sender->backoff, timing);
    if (sender->ledger.lost > 0 && ready > now)
        next = lh_earlier(next, ready);
    if (!sender->nack)
        return lh_earlier(next, sr_rto_expiry(&sender->rto, timing));
    next = lh_earlier(next, sr_marker_cover_expiry(&sender->marker, timing));
    return lh_earlier(next, sr_marker_repeat_expiry(&sender->marker));
}

void sr_sender_step(void *state, const struct lh_sender_view *view, struct lh_actions *actions)
{
    struct sr_sender *sender = state;
    struct sr_timing timing = sr_timing_of(&view->path);
    lh_time now = view->now;
    if (!sender->nack) {
        uint32_t expired = sr_rto_on_expired(&sender->rto, &sender->ledger, &timing, now);
        sr_count_many(&sender->stats->timeouts, expired);
    } else if (sr_marker_cover_expiry(&sender->marker, &timing) <= now) {
        cover(sender, &timing, now,
              actions); /* before the injection: under a full list it would wait for ever */
    }
    inject(sender, view, &timing, actions);
    if (sender->nack)
        nack_timers(sender, &timing, now, actions);
    if (sr_probe_expiry(&sender->probe, &timing) <= now)
        on_probe_expired(sender, &timing, now, actions);
    actions->in_flight_chunks = sr_ledger_in_flight(&sender->ledger);
    actions->next_ns = next_expiry(sender, &timing, now);
}

/* ---- receiver -------------------------------------------------------------------------------------- */

struct sr_receiver {
    struct sr_arrivals arrivals; /* its bits follow this struct */
    struct lh_stats *stats;
    bool nack_scheme;
    bool asked;    /* by a probe, since the last answer */
    bool complete; /* was said */
    struct sr_ack_pace pace;
    struct sr_answer answer; /* that is being written */
    struct sr_nack nack;     /* sr-nack only; else its horizon stays 0 */
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
    sr_answer_init(&receiver->answer);
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

static void begin_answer(struct sr_receiver *receiver, enum sr_answer_kind kind, lh_time now)
{
    sr_answer_begin(&receiver->answer, kind, &receiver->arrivals, &receiver->nack);
    receiver->asked = false;
    sr_ack_pace_on_ack(&receiver->pace, now);
}

static void write_answer(struct sr_receiver *receiver, struct lh_actions *actions)
{
    sr_answer_write(&receiver->answer, &receiver->arrivals, &receiver->nack, receiver->stats, actions);
}

static enum sr_answer_kind answer_due(struct sr_receiver *receiver, const struct lh_receiver_view *view,
                                      const struct sr_timing *timing)
{
    const struct sr_arrivals *arrivals = &receiver->arrivals;
    if (receiver->nack_scheme && sr_nack_on_step(&receiver->nack, arrivals, view, timing))
        return SR_ANSWER_NACK;
    if (receiver->asked)
        return arrivals->cumulative < receiver->nack.horizon ? SR_ANSWER_NACK : SR_ANSWER_ACK;
    bool paced = sr_ack_pace_expiry(&receiver->pace, arrivals->limit, timing) <= view->now;
    return paced ? SR_ANSWER_ACK : SR_ANSWER_NONE;
}

static lh_time receiver_next_expiry(const struct sr_receiver *receiver, const struct lh_receiver_view *view,
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
    if (receiver->answer.writing == SR_ANSWER_NONE) {
        enum sr_answer_kind kind = answer_due(receiver, view, &timing);
        if (kind != SR_ANSWER_NONE)
            begin_answer(receiver, kind, view->now);
        write_answer(receiver, actions);
    }
    actions->next_ns = receiver_next_expiry(receiver, view, &timing);
}
