/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/sender.h"

#include <assert.h>

#include "schemes/sr/backoff.h"
#include "schemes/sr/ledger.h"
#include "schemes/sr/marker.h"
#include "schemes/sr/params.h"
#include "schemes/sr/probe.h"
#include "schemes/sr/report.h"
#include "schemes/sr/rto.h"
#include "wire/selective_repeat.h"

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
    sr_probe_on_heard(&sender->probe, now);
    sr_report_arrivals(ledger, ack);
    sr_backoff_on_heard(&sender->backoff, ack->arrived);
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
    bool repairs = sr_backoff_expiry(&sender->backoff) <= view->now;
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
    if (sender->ledger.lost > 0 && sr_backoff_expiry(&sender->backoff) > now)
        next = lh_earlier(next, sr_backoff_expiry(&sender->backoff));
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
