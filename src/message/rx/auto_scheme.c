/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx/auto_scheme.h"

#include <string.h>

#include "message/control/number.h"
#include "sdr/driver.h"

/* Before it is measured. What is planned with it is planned again as soon as it is. */
#define RATE_UNKNOWN_BPS 10e9
/* Decided ahead, beside two times what the path holds: for late hosts, and before a rate is known. */
#define AHEAD_BYTES ((uint64_t)16 << 20)

static void find_segment_bytes(struct auto_scheme *a, const struct lh_attr *attr)
{
    a->segment_bytes_min = attr->slot_bytes;
    for (uint32_t i = 0; i < a->choice.count; i++) {
        const struct auto_candidate *candidate = &a->choice.candidates[i];
        struct scheme_choice choice = {.scheme = candidate->scheme};
        memcpy(choice.params, candidate->params, sizeof choice.params);
        uint64_t bytes = scheme_segment_bytes(&choice, attr);
        if (bytes < a->segment_bytes_min)
            a->segment_bytes_min = bytes;
    }
}

void auto_scheme_init(struct rx *rx, struct auto_scheme *a)
{
    const struct auto_setup setup = {
        .mtu_bytes = rx->attr->mtu_bytes,
        .chunk_bytes = rx->attr->chunk_bytes,
        .slot_chunks = (uint32_t)(rx->attr->slot_bytes / rx->attr->chunk_bytes),
        .slots = rx->attr->slots,
        .cores = rx->attr->coders == LH_NO_CODERS ? 1 : rx->attr->coders,
        .by = rx->choice.by,
        .max_overhead = rx->choice.max_overhead,
    };
    *a = (struct auto_scheme){.arrival_ns = LH_TIME_NEVER};
    auto_choice_init(&a->choice, &setup);
    path_estimate_init(&a->estimate);
    find_segment_bytes(a, rx->attr);
    rx->automatic = a;
}

uint64_t auto_scheme_segment_bytes_min(const struct rx *rx)
{
    return rx->automatic ? rx->automatic->segment_bytes_min : scheme_segment_bytes(&rx->choice, rx->attr);
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

void auto_scheme_choose(struct rx *rx, uint64_t capacity, lh_time now, struct scheme_choice *choice)
{
    struct auto_scheme *a = rx->automatic;
    if (!a)
        return;
    a->capacity = capacity;
    a->chosen = 0;
    a->choice.resting = now < a->choice.rest_until;
    if (rx->path->rtt_ns > 0) { /* else nothing is known at all */
        struct auto_path path = path_of(rx);
        a->chosen = auto_choice_get(&a->choice, capacity, &path);
    }
    const struct auto_candidate *candidate = &a->choice.candidates[a->chosen];
    choice->scheme = candidate->scheme;
    memcpy(choice->params, candidate->params, sizeof choice->params);
}

bool auto_scheme_planning(const struct rx *rx)
{
    return rx->automatic && rx->automatic->choice.job.active;
}

bool auto_scheme_plan(struct rx *rx)
{
    return auto_choice_work(&rx->automatic->choice);
}

void auto_scheme_planned(struct rx *rx, lh_time now, lh_time took_ns)
{
    struct auto_choice *choice = &rx->automatic->choice;
    auto_choice_worked(choice, now, took_ns);
    rx->stats.schemes_planned = choice->plans;
    rx->stats.schemes_changed = choice->changes;
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

static void name_candidate(const struct auto_choice *choice, uint32_t candidate, char *out, size_t size)
{
    lh_model_scheme_format(&choice->candidates[candidate].model, out, size);
}

void auto_scheme_report(const struct rx *rx, struct lh_scheme_report *out)
{
    const struct auto_scheme *a = rx->automatic;
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
        .plans = a->choice.plans,
        .changes = a->choice.changes,
    };
    name_candidate(&a->choice, a->chosen, out->scheme, sizeof out->scheme);
    const struct auto_answer *answer = auto_choice_answer(&a->choice, a->capacity);
    if (!answer || answer->chosen != a->chosen)
        return;
    out->expected_s = answer->seconds;
    if (answer->other == UINT32_MAX)
        return;
    out->other_expected_s = answer->other_seconds;
    name_candidate(&a->choice, answer->other, out->other, sizeof out->other);
}
