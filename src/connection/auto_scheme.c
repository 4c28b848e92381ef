/* SPDX-License-Identifier: BSD-3-Clause */
#include "connection/auto_scheme.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "connection/number.h"
#include "connection/receiver.h"
#include "reliability/auto_choice.h"
#include "sdr/driver.h"

/* Before it is measured. What is planned with it is planned again as soon as it is. */
#define RATE_UNKNOWN_BPS 10e9
/* Decided ahead, beside two times what the path holds: for late hosts, and before a rate is known. */
#define AHEAD_BYTES ((uint64_t)16 << 20)
/* Between two candidates: what arrives comes first. */
#define WORK_SPAN_NS LH_NS_PER_US

struct auto_scheme {
    struct path_estimate estimate;
    struct auto_choice choice;
    uint64_t segment_bytes_min;
    uint32_t newest;    /* segment of which a chunk has arrived */
    bool any;           /* or none has */
    lh_time arrival_ns; /* the newest look that found anything; LH_TIME_NEVER: none did */
    uint64_t rx_bytes;  /* of all that had arrived by then */
    uint32_t chosen;    /* candidate, of the newest message */
    uint64_t room;      /* of that message */
};

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

int auto_scheme_init(struct lh_connection *c)
{
    if (!c->choice.automatic)
        return 0;
    struct auto_scheme *a = calloc(1, sizeof *a);
    if (!a)
        return lh_fail(LH_ENOMEM, "no memory to choose schemes with");
    const struct auto_setup setup = {
        .mtu_bytes = c->attr.mtu_bytes,
        .chunk_bytes = c->attr.chunk_bytes,
        .slot_chunks = (uint32_t)(c->attr.slot_bytes / c->attr.chunk_bytes),
        .slots = c->attr.slots,
        .cores = c->attr.coders == LH_NO_CODERS ? 1 : c->attr.coders,
        .by = c->choice.by,
        .max_overhead = c->choice.max_overhead,
    };
    auto_choice_init(&a->choice, &setup);
    path_estimate_init(&a->estimate);
    find_segment_bytes(a, &c->attr);
    a->arrival_ns = LH_TIME_NEVER;
    c->automatic = a;
    return 0;
}

void auto_scheme_free(struct lh_connection *c)
{
    free(c->automatic);
    c->automatic = NULL;
}

uint64_t auto_scheme_segment_bytes_min(const struct lh_connection *c)
{
    return c->automatic ? c->automatic->segment_bytes_min : scheme_segment_bytes(&c->choice, &c->attr);
}

/* ---- choosing ---------------------------------------------------------------------------------------- */

static struct auto_path path_of(const struct lh_connection *c)
{
    const struct path_estimate *estimate = &c->automatic->estimate;
    double rate = path_estimate_rate_bps(estimate);
    return (struct auto_path){
        .rtt_s = (double)c->path.rtt_ns / (double)LH_NS_PER_S,
        .window_s = (double)c->path.reorder_window_ns / (double)LH_NS_PER_S,
        .bandwidth_bps = rate > 0 ? rate : RATE_UNKNOWN_BPS,
        .chunk_loss = path_estimate_loss_upper(estimate),
        .burst_packets = path_estimate_burst_packets(estimate, c->attr.chunk_bytes / c->attr.mtu_bytes),
    };
}

bool auto_scheme_may_start(struct lh_connection *c)
{
    const struct receiver *r = &c->receiver;
    uint64_t open = 0;
    if (!c->automatic)
        return true;
    for (uint32_t n = r->segment_oldest; n != r->segment_next; n++) { /* at most attr.slots */
        const struct recv_segment *segment = recv_segment_at(c, n);
        open += segment->state == SEGMENT_OPEN ? segment->bytes : 0;
    }
    double held =
        path_estimate_rate_bps(&c->automatic->estimate) / 8 * (double)c->path.rtt_ns / (double)LH_NS_PER_S;
    return open == 0 || (double)open < 2 * held + (double)AHEAD_BYTES;
}

void auto_scheme_choose(struct lh_connection *c, uint64_t room, struct scheme_choice *choice)
{
    struct auto_scheme *a = c->automatic;
    if (!a)
        return;
    a->room = room;
    a->chosen = 0;
    a->choice.resting = lh_sdr_now(c->context) < a->choice.rest_until;
    if (c->path.rtt_ns > 0) { /* else nothing is known at all */
        struct auto_path path = path_of(c);
        a->chosen = auto_choice_get(&a->choice, room, &path);
    }
    const struct auto_candidate *candidate = &a->choice.candidates[a->chosen];
    choice->scheme = candidate->scheme;
    memcpy(choice->params, candidate->params, sizeof choice->params);
}

void auto_scheme_step(struct lh_connection *c, lh_time now, lh_time *next)
{
    struct auto_scheme *a = c->automatic;
    if (!a)
        return;
    if (a->choice.job.active) {
        lh_time began = lh_sdr_now(c->context);
        if (auto_choice_work(&a->choice))
            lh_keep_earlier(next, now + WORK_SPAN_NS);
        lh_time ended = lh_sdr_now(c->context);
        auto_choice_worked(&a->choice, ended, ended - began);
    }
    c->stats.schemes_planned = a->choice.plans;
    c->stats.schemes_changed = a->choice.changes;
}

/* ---- watching ---------------------------------------------------------------------------------------- */

/* A chunk of a later segment has arrived. */
static bool is_overtaken(const struct auto_scheme *a, const struct recv_segment *segment)
{
    return a->any && number_before(segment->sequence, a->newest);
}

static struct arrival_look look_of(struct lh_connection *c, const struct recv_segment *segment, lh_time now)
{
    const struct auto_scheme *a = c->automatic;
    bool known = recv_message_at(c, segment->message)->bytes != MESSAGE_BYTES_UNKNOWN;
    lh_time pause = c->path.rtt_ns - c->path.rtt_ns / 4;
    return (struct arrival_look){
        .now = now,
        .window_ns = c->path.reorder_window_ns,
        .bitmap = segment->bitmap,
        .chunks = (segment->bytes + c->attr.chunk_bytes - 1) / c->attr.chunk_bytes,
        .overtaken = known && (is_overtaken(a, segment) ||
                               segment->coded.arrived > 0), /* parity is sent after the data */
        .paused = a->arrival_ns != LH_TIME_NEVER && now - a->arrival_ns > pause,
    };
}

void auto_scheme_look(struct lh_connection *c, struct recv_segment *segment, bool changed, lh_time now)
{
    struct auto_scheme *a = c->automatic;
    if (!a)
        return;
    bool later = is_overtaken(a, segment);
    bool fresh = later && !segment->overtaken;
    if (!changed && !fresh && segment->watch.mark_at > now)
        return;
    segment->overtaken = later;
    struct arrival_look look = look_of(c, segment, now);
    arrival_watch_look(&segment->watch, &look, &a->estimate);
    if (changed && (!a->any || number_before(a->newest, segment->sequence)))
        a->newest = segment->sequence;
    a->any |= changed;
}

void auto_scheme_looked(struct lh_connection *c, uint32_t chunks, lh_time now)
{
    struct auto_scheme *a = c->automatic;
    if (!a || chunks == 0)
        return;
    uint64_t rx_bytes = sdr_qp_rx_bytes(c->qp); /* the last chunk of a message may be as short as a byte */
    path_estimate_on_arrivals(&a->estimate, now, chunks, rx_bytes - a->rx_bytes, c->path.rtt_ns / 4);
    a->rx_bytes = rx_bytes;
    a->arrival_ns = now;
}

void auto_scheme_segment_over(struct lh_connection *c, struct recv_segment *segment, lh_time now)
{
    struct auto_scheme *a = c->automatic;
    if (!a || segment->bytes == 0)
        return;
    struct arrival_look look = look_of(c, segment, now);
    arrival_watch_end(&segment->watch, &look, &a->estimate);
}

/* ---- what can be asked ------------------------------------------------------------------------------- */

static void name_candidate(const struct auto_choice *choice, uint32_t candidate, char *out, size_t size)
{
    lh_model_scheme_format(&choice->candidates[candidate].model, out, size);
}

static void report(const struct lh_connection *c, struct lh_scheme_report *out)
{
    const struct auto_scheme *a = c->automatic;
    *out = (struct lh_scheme_report){
        .automatic = true,
        .message_bytes = a->room,
        .rtt_ns = c->path.rtt_ns,
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
    const struct auto_answer *answer = auto_choice_answer(&a->choice, a->room);
    if (!answer || answer->chosen != a->chosen)
        return;
    out->expected_s = answer->seconds;
    if (answer->other == UINT32_MAX)
        return;
    out->other_expected_s = answer->other_seconds;
    name_candidate(&a->choice, answer->other, out->other, sizeof out->other);
}

int lh_connection_scheme(struct lh_connection *connection, struct lh_scheme_report *out)
{
    pthread_mutex_lock(&connection->requests->lock);
    *out = (struct lh_scheme_report){.rtt_ns = connection->path.rtt_ns};
    if (connection->automatic)
        report(connection, out);
    else
        snprintf(out->scheme, sizeof out->scheme, "%s", connection->reliability);
    pthread_mutex_unlock(&connection->requests->lock);
    return 0;
}
