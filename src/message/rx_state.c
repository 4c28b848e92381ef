/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx/auto_scheme.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "message/control/number.h"
#include "sdr/driver.h"

/* Before it is measured. What is planned with it is planned again as soon as it is. */
#define RATE_UNKNOWN_BPS 10e9
/* Decided ahead, beside two times what the path holds: for late hosts, and before a rate is known. */
#define AHEAD_BYTES ((uint64_t)16 << 20)
/* Fewer without a loss among them say less than what a scheme assumes of a path that it does not know. */
#define KNOWN_CHUNKS 1024u

static struct auto_setup setup_of(const struct rx *rx)
{
    return (struct auto_setup){
        .mtu_bytes = rx->attr->mtu_bytes,
        .chunk_bytes = rx->attr->chunk_bytes,
        .slot_chunks = (uint32_t)(rx->attr->slot_bytes / rx->attr->chunk_bytes),
        .slots = rx->attr->slots,
        .cores = rx->attr->coders == LH_NO_CODERS ? 1 : rx->attr->coders,
        .by = rx->choice.by,
        .max_overhead = rx->choice.max_overhead,
        .announced = rx->peer_announced,
    };
}

void auto_scheme_init(struct rx *rx, struct auto_scheme *a)
{
    *a = (struct auto_scheme){.arrival_ns = LH_TIME_NEVER};
    if (rx->choice.automatic) {
        int error = lh_model_scheme_parse(rx->choice.scheme->name, &a->named.scheme);
        assert(!error); /* of this build */
    }
    path_estimate_init(&a->estimate);
    rx->automatic = a;
}

/* ---- memory ------------------------------------------------------------------------------------------ */

/* Where something is repaired it matters how: else there is nothing to be weighed. */
static bool hold_choice(struct rx *rx)
{
    struct auto_scheme *a = rx->automatic;
    if (a->choice || a->estimate.chunks_lost == 0 || rx->path->rtt_ns == 0)
        return a->choice != NULL;
    a->choice = store_try(rx->store, sizeof *a->choice);
    if (!a->choice)
        return false;
    const struct auto_setup setup = setup_of(rx);
    auto_choice_init(a->choice, &setup);
    auto_choice_recall(a->choice, &a->kept);
    return true;
}

void auto_scheme_give_back(struct rx *rx)
{
    struct auto_scheme *a = rx->automatic;
    if (!a || !a->choice)
        return;
    auto_choice_keep(a->choice, &a->kept);
    store_give(rx->store, a->choice, sizeof *a->choice);
    a->choice = NULL;
}

/* ---- choosing ---------------------------------------------------------------------------------------- */

static struct auto_path path_of(const struct rx *rx)
{
    const struct path_estimate *estimate = &rx->automatic->estimate;
    double rate = path_estimate_rate_bps(estimate);
    return (struct auto_path){
        .rtt_s = (double)rx->path->rtt_ns / (double)LH_NS_PER_S,
        .window_s = (double)rx->path->reorder_window_ns / (double)LH_NS_PER_S,
        .bandwidth_bps = rate > 0 ? rate : RATE_UNKNOWN_BPS,
        .chunk_loss = path_estimate_loss_upper(estimate),
        .burst_packets = path_estimate_burst_packets(estimate, rx->attr->chunk_bytes / rx->attr->mtu_bytes),
    };
}

bool auto_scheme_may_start(const struct rx *rx)
{
    uint64_t open = 0;
    if (!rx->automatic)
        return true;
    for (uint32_t n = rx->segment_oldest; n != rx->segment_next; n++) { /* at most attr.slots */
        const struct rx_segment *segment = rx_segment_at(rx, n);
        open += segment->state == SEGMENT_OPEN ? segment->bytes : 0;
    }
    double held = path_estimate_rate_bps(&rx->automatic->estimate) / 8 * (double)rx->path->rtt_ns /
                  (double)LH_NS_PER_S;
    return open == 0 || (double)open < 2 * held + (double)AHEAD_BYTES;
}

static void name_candidate(struct auto_scheme *a, uint32_t candidate)
{
    const struct auto_choice *choice = a->choice;
    const struct auto_answer *answer = auto_choice_answer(choice, a->capacity);
    a->named = (struct auto_named){.scheme = choice->candidates[candidate].model};
    if (!answer || answer->chosen != candidate)
        return;
    a->named.seconds = answer->seconds;
    if (answer->other == UINT32_MAX)
        return;
    a->named.other = choice->candidates[answer->other].model;
    a->named.other_seconds = answer->other_seconds;
}

/* A scheme that adapts to the path learns how it is; of one that is hardly known it keeps what it assumes. */
static void adapt(const struct rx *rx, uint32_t extra_chunks_max, struct scheme_choice *choice)
{
    const struct path_estimate *estimate = &rx->automatic->estimate;
    bool known = estimate->chunks_lost > 0 || estimate->chunks_seen >= KNOWN_CHUNKS;
    if (choice->scheme->measured && known)
        choice->scheme->measured(path_estimate_loss_upper(estimate), path_estimate_run_upper(estimate),
                                 extra_chunks_max, choice->params);
}

static void choose_planned(struct rx *rx, uint64_t capacity, lh_time now, struct scheme_choice *choice)
{
    struct auto_scheme *a = rx->automatic;
    if (!hold_choice(rx))
        return;
    a->choice->resting = now < a->choice->rest_until;
    struct auto_path path = path_of(rx);
    uint32_t number = auto_choice_get(a->choice, capacity, &path);
    const struct auto_candidate *candidate = &a->choice->candidates[number];
    struct scheme_choice chosen = {.scheme = candidate->scheme};
    memcpy(chosen.params, candidate->params, sizeof chosen.params);
    if (capacity / scheme_segment_bytes(&chosen, rx->attr) >= INT32_MAX)
        return; /* of short segments there would be too many */
    name_candidate(a, number);
    choice->scheme = chosen.scheme;
    memcpy(choice->params, chosen.params, sizeof choice->params);
}

void auto_scheme_choose(struct rx *rx, uint64_t capacity, lh_time now, struct scheme_choice *choice)
{
    if (!rx->automatic)
        return;
    rx->automatic->capacity = capacity;
    if (rx->choice.automatic)
        choose_planned(rx, capacity, now, choice);
    adapt(rx, (uint32_t)(rx->attr->slot_bytes / rx->attr->chunk_bytes), choice);
}

void auto_scheme_spare(const struct rx *rx, struct scheme_choice *choice)
{
    *choice = rx->choice;
    if (rx->automatic)
        adapt(rx, 0, choice);
}

bool auto_scheme_planning(const struct rx *rx)
{
    return rx->automatic && rx->automatic->choice && rx->automatic->choice->job.active;
}

bool auto_scheme_plan(struct rx *rx)
{
    return auto_choice_work(rx->automatic->choice);
}

void auto_scheme_planned(struct rx *rx, lh_time now, lh_time took_ns)
{
    struct auto_choice *choice = rx->automatic->choice;
    auto_choice_worked(choice, now, took_ns);
    rx->stats->schemes_planned = choice->plans;
    rx->stats->schemes_changed = choice->changes;
}

/* ---- watching ---------------------------------------------------------------------------------------- */

/* A chunk of a later segment has arrived. */
static bool is_overtaken(const struct auto_scheme *a, const struct rx_segment *segment)
{
    return a->any && number_before(segment->sequence, a->newest);
}

static struct arrival_look look_of(const struct rx *rx, const struct rx_segment *segment, lh_time now)
{
    const struct auto_scheme *a = rx->automatic;
    bool known = rx_message_at(rx, segment->message)->bytes != MESSAGE_BYTES_UNKNOWN;
    lh_time pause = rx->path->rtt_ns - rx->path->rtt_ns / 4;
    return (struct arrival_look){
        .now = now,
        .window_ns = rx->path->reorder_window_ns,
        .bitmap = segment->bitmap,
        .chunks = rx_segment_chunks(rx, segment),
        .overtaken = known && (is_overtaken(a, segment) ||
                               segment->coded.arrived > 0), /* parity is sent after the data */
        .paused = a->arrival_ns != LH_TIME_NEVER && now - a->arrival_ns > pause,
    };
}

void auto_scheme_poll(struct rx *rx, struct rx_segment *segment, bool changed, lh_time now)
{
    struct auto_scheme *a = rx->automatic;
    if (!a)
        return;
    bool later = is_overtaken(a, segment);
    bool fresh = later && !segment->overtaken;
    if (!changed && !fresh && segment->watch.mark_at > now)
        return;
    segment->overtaken = later;
    struct arrival_look look = look_of(rx, segment, now);
    arrival_watch_look(&segment->watch, &look, &a->estimate);
    if (changed && (!a->any || number_before(a->newest, segment->sequence)))
        a->newest = segment->sequence;
    a->any |= changed;
}

void auto_scheme_polled(struct rx *rx, uint32_t chunks, lh_time now)
{
    struct auto_scheme *a = rx->automatic;
    if (!a || chunks == 0)
        return;
    uint64_t rx_bytes = sdr_qp_rx_bytes(rx->qp); /* the last chunk of a message may be as short as a byte */
    path_estimate_on_arrivals(&a->estimate, now, chunks, rx_bytes - a->rx_bytes, rx->path->rtt_ns / 4);
    a->rx_bytes = rx_bytes;
    a->arrival_ns = now;
}

void auto_scheme_segment_over(struct rx *rx, struct rx_segment *segment, lh_time now)
{
    struct auto_scheme *a = rx->automatic;
    if (!a || segment->bytes == 0)
        return;
    struct arrival_look look = look_of(rx, segment, now);
    arrival_watch_end(&segment->watch, &look, &a->estimate);
}

/* ---- what can be asked ------------------------------------------------------------------------------- */

void auto_scheme_report(const struct rx *rx, struct lh_scheme_report *out)
{
    const struct auto_scheme *a = rx->automatic;
    if (!a) {
        *out = (struct lh_scheme_report){.automatic = true, .rtt_ns = rx->path->rtt_ns};
        snprintf(out->scheme, sizeof out->scheme, "%s", rx->choice.scheme->name);
        return;
    }
    *out = (struct lh_scheme_report){
        .automatic = true,
        .message_bytes = a->capacity,
        .rtt_ns = rx->path->rtt_ns,
        .rate_bps = path_estimate_rate_bps(&a->estimate),
        .chunk_loss = path_estimate_loss(&a->estimate),
        .chunk_loss_planned = path_estimate_loss_upper(&a->estimate),
        .run_chunks = path_estimate_run_chunks(&a->estimate),
        .chunks_seen = a->estimate.chunks_seen,
        .chunks_lost = a->estimate.chunks_lost,
        .plans = rx->stats->schemes_planned,
        .changes = rx->stats->schemes_changed,
        .expected_s = a->named.seconds,
        .other_expected_s = a->named.other_seconds,
    };
    lh_model_scheme_format(&a->named.scheme, out->scheme, sizeof out->scheme);
    if (a->named.other_seconds > 0)
        lh_model_scheme_format(&a->named.other, out->other, sizeof out->other);
}
