/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx_state.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/connection.h>
#include <longhaul/sdr_ext.h>
#include <longhaul/types.h>

#include "control/message_control.h"
#include "message/attributes.h"
#include "message/parity_coding.h"
#include "message/receive_buffer.h"
#include "model/arrival_model.h"
#include "schemes/auto_choice.h"
#include "schemes/scheme_table.h"
#include "sdr/sdr_driver.h"
#include "store/store.h"
#include "wire/roce_packet.h"

/* ---- data path ------------------------------------------------------------------------------------- */

/* What a firewall's absence cannot explain: all packets of the announced segments lost, each announcement one
 * overdue round trip after the one before. And not before people would notice. Where half of all packets are
 * lost, some announcements of a lone packet come before the packet does: its repeats become rarer, to eight
 * round trips, and announcements do not. So a lone packet is weaker evidence than several. */
#define EVIDENCE_MIN    32u
#define EVIDENCE_MAX    4u /* of one announcement: its packets */
#define SILENCE_MIN_NS  (2 * LH_NS_PER_S)
#define SILENCE_OVERDUE 8u
#define SILENCE_STEPS   8u /* at least: a clock that jumps, or a host that did not run, is no silence */
#define SILENCE_WHOLE   (1 - 1e-12) /* of sums of shares, which are rounded */
#define PORTS           "let UDP ports 4791 and 49152-65535 through"

static void on_arrived(struct data_path_kind *kind)
{
    kind->passed = true;
    kind->evidence = 0;
}

/* True when so many were announced, for so long, that all of them cannot just be lost. A path that worked
 * gets the time that a silent peer gets. A gap counts as a share of that, by the round trip as it is known
 * when it ends: after a clock's jump that is long, and becomes shorter again. */
static bool on_announced(struct data_path_kind *kind, uint32_t packets, const struct data_path_view *view,
                         lh_time now)
{
    lh_time silence_ns = SILENCE_MIN_NS + SILENCE_OVERDUE * view->overdue_ns;
    const lh_time step_max_ns = silence_ns / SILENCE_STEPS;
    if (packets == 0)
        return false;
    if (kind->evidence == 0) {
        kind->silent = 0;
        kind->last_ns = now;
    }
    lh_time step_ns = now - kind->last_ns < step_max_ns ? now - kind->last_ns : step_max_ns;
    if (kind->passed && silence_ns < view->timeout_ns)
        silence_ns = view->timeout_ns;
    kind->silent += (double)step_ns / (double)silence_ns;
    kind->last_ns = now;
    if (kind->evidence < EVIDENCE_MIN)
        kind->evidence += packets < EVIDENCE_MAX ? packets : EVIDENCE_MAX;
    return kind->evidence >= EVIDENCE_MIN && kind->silent >= SILENCE_WHOLE;
}

enum data_path_state data_path_on_announced(struct data_path *path, const struct data_path_view *view,
                                            lh_time now)
{
    assert(view->bytes > 0 && view->mtu_bytes > 0);
    uint32_t full = view->bytes / view->mtu_bytes;
    uint32_t packets = full + (view->bytes % view->mtu_bytes != 0);
    if (view->packets != path->packets) {
        on_arrived(&path->any);
        path->small = false;
    }
    path->packets = view->packets;
    if (view->full)
        on_arrived(&path->full);
    path->small |= full == 0; /* in a burst with long ones it may be lost with them */
    if (on_announced(&path->any, packets, view, now))
        return DATA_PATH_BLOCKED;
    return on_announced(&path->full, full, view, now) && path->any.passed ? DATA_PATH_TOO_SMALL
                                                                          : DATA_PATH_PASSES;
}

lh_time data_path_since(const struct data_path_view *view, lh_time now)
{
    lh_time silence_ns = SILENCE_MIN_NS + SILENCE_OVERDUE * view->overdue_ns;
    return now > silence_ns ? now - silence_ns : 0;
}

char *data_path_reason(const struct data_path *path, enum data_path_state state, uint32_t mtu_bytes,
                       uint32_t probed_bytes, char *out, size_t size)
{
    assert(state != DATA_PATH_PASSES);
    const char *when = path->any.passed ? " any more" : "";
    bool is_small = state == DATA_PATH_TOO_SMALL && mtu_bytes > ROCE_MTU_MIN;
    char remedy[64] = "or use the --mtu of longhaul probe";
    if (probed_bytes > 0 && probed_bytes < mtu_bytes)
        snprintf(remedy, sizeof remedy, "or use --mtu %u", probed_bytes - probed_bytes % ROCE_PAYLOAD_STEP);
    if (is_small)
        snprintf(out, size,
                 "data packets of MTU %u do not pass%s, smaller ones do: a link on the path has a smaller "
                 "MTU (%s)",
                 mtu_bytes, path->full.passed ? " any more" : "", remedy + strlen("or "));
    else if (path->small || mtu_bytes <= ROCE_MTU_MIN || probed_bytes >= mtu_bytes)
        snprintf(out, size,
                 "data packets do not pass%s, control packets do: a firewall or NAT on the path (" PORTS
                 ")",
                 when);
    else
        snprintf(out, size,
                 "data packets do not pass%s, control packets do: a firewall, NAT, or a link with a "
                 "smaller MTU (" PORTS ", %s)",
                 when, remedy);
    return out;
}

/* ---- auto deadline --------------------------------------------------------------------------------- */

#define FIRST_SHARE 10u /* of the limit */
#define MARGIN      1.25
#define SLACK_NS    (50 * LH_NS_PER_US)
#define ROUND_TRIPS 2u
#define SMOOTHING   0.2
#define NOTHING_MAX 16u

lh_time auto_deadline_of(const struct auto_deadline *automatic, uint64_t bytes, lh_time rtt_ns,
                         lh_time limit_ns)
{
    assert(limit_ns >= LH_NS_PER_US);
    double ns = (double)(limit_ns / FIRST_SHARE);
    if (automatic->cost_ns > 0)
        ns = MARGIN * automatic->cost_ns * (double)bytes + (double)(ROUND_TRIPS * rtt_ns + SLACK_NS);
    ns *= (double)(1u << automatic->nothing);
    if (ns >= (double)limit_ns)
        return limit_ns;
    return ns < (double)LH_NS_PER_US ? LH_NS_PER_US : (lh_time)ns;
}

void auto_deadline_on_end(struct auto_deadline *automatic, lh_time took_ns, uint64_t arrived_bytes)
{
    if (arrived_bytes == 0) {
        automatic->nothing += automatic->nothing < NOTHING_MAX;
        return;
    }
    double cost_ns = (double)took_ns / (double)arrived_bytes;
    double before_ns = automatic->cost_ns > 0 ? automatic->cost_ns : cost_ns;
    automatic->cost_ns = before_ns + SMOOTHING * (cost_ns - before_ns);
    automatic->nothing = 0;
}

/* ---- auto scheme ----------------------------------------------------------------------------------- */

/* Before it is measured. What is planned with it is planned again as soon as it is. */
#define RATE_UNKNOWN_BPS 10e9
/* Decided ahead, beside two times what the path holds: for late hosts, and before a rate is known. */
#define AHEAD_BYTES ((uint64_t)16 << 20)
/* Fewer without a loss among them say less than what a scheme assumes of a path that it does not know. */
#define KNOWN_CHUNKS 1024u
/* Of a path that is not known a repair costs a round trip or more, and parity that is not needed little, as
 * long as the message takes less time than the round trip. Group operations of 1 MiB (25 ms, 2 Gbit/s, loss
 * 1e-2) take 29 ms so from the second on, and 84 ms for the first 17 without. Then thinner parity: of what is
 * decided ahead, much would be lost with the first loss. */
struct prior {
    const char *scheme;
    uint64_t until_chunks; /* seen; where one of them was lost, until a plan is made */
};
static const struct prior priors[] = {{"ec:mds", KNOWN_CHUNKS}, {"hybrid", 32 * KNOWN_CHUNKS}};
#define PRIORS (sizeof priors / sizeof *priors)
/* A message of fewer chunks would have more parity than half of its data. */
#define PRIOR_CHUNKS_MIN 16u
/* With larger ones so many chunks would be too many bytes. */
#define PRIOR_CHUNK_BYTES_MAX (16u << 10)
/* Part of the slots that segments may have taken: one of a code takes two, and a stream of short messages
 * needs them. */
#define PRIOR_SLOTS_PART 2u
#define PRIOR_RATE_BPS   1e9 /* before it is measured: the message of a short path is long soon */
/* Decided ahead meanwhile, in place of AHEAD_BYTES, for the prior costs its parity. */
#define PRIOR_AHEAD_BYTES ((uint64_t)4 << 20)
/* A message of so many bytes is short before the round trip is measured. */
#define SHORT_BYTES_UNKNOWN ((uint64_t)1 << 20)

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
    if (rx->choice.automatic)
        a->named.unplanned = rx->choice.scheme->name;
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
        .bandwidth_bps = rate > 0 ? rate / (1 - path_estimate_loss_upper(estimate)) : RATE_UNKNOWN_BPS,
        .chunk_loss = path_estimate_loss_upper(estimate),
        .burst_packets = path_estimate_burst_packets(estimate, rx->attr->chunk_bytes / rx->attr->mtu_bytes),
    };
}

/* What the path holds at that rate. */
static double held_bytes(const struct rx *rx, double rate_bps)
{
    return rate_bps / 8 * (double)rx->path->rtt_ns / (double)LH_NS_PER_S;
}

/* The user sets no limit of overhead, and too little of the path has been seen. */
static bool has_prior(const struct rx *rx)
{
    return rx->choice.automatic && isinf(rx->choice.max_overhead) &&
           rx->attr->chunk_bytes <= PRIOR_CHUNK_BYTES_MAX &&
           rx->automatic->estimate.chunks_seen < priors[PRIORS - 1].until_chunks;
}

static double ahead_bytes(const struct rx *rx)
{
    double rate = path_estimate_rate_bps(&rx->automatic->estimate);
    double ahead = (double)(has_prior(rx) ? PRIOR_AHEAD_BYTES : AHEAD_BYTES);
    return rate > 0 ? 2 * held_bytes(rx, rate) + ahead : fmax(held_bytes(rx, PRIOR_RATE_BPS), ahead);
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
    return open == 0 || (double)open < ahead_bytes(rx);
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

/* Whether a message takes less time than the round trip. Before that is measured: little time. */
static bool is_short(const struct rx *rx, uint64_t bytes)
{
    double rate = path_estimate_rate_bps(&rx->automatic->estimate);
    if (rx->path->rtt_ns == 0)
        return bytes <= SHORT_BYTES_UNKNOWN;
    return (double)bytes <= held_bytes(rx, rate > 0 ? rate : PRIOR_RATE_BPS);
}

/* Of segments that are too short there would be too many. */
static bool can_cut(const struct rx *rx, const struct scheme_choice *choice, uint64_t bytes)
{
    return bytes / scheme_segment_bytes(choice, rx->attr) < INT32_MAX;
}

/* Whether the sender knows the scheme, and all of the message can be posted now. */
static bool prior_suits(const struct rx *rx, const struct scheme_choice *prior, uint64_t bytes)
{
    uint64_t segment_bytes = scheme_segment_bytes(prior, rx->attr);
    if (!scheme_is_known(prior, rx->peer_announced) || segment_bytes == 0)
        return false;
    uint64_t slots =
        rx->segment_next - rx->segment_oldest + 2 * ((bytes + segment_bytes - 1) / segment_bytes);
    return slots <= rx->attr->slots / PRIOR_SLOTS_PART;
}

/* By how much of the path has been seen. */
static void choose_prior(struct rx *rx, uint64_t bytes, struct scheme_choice *choice)
{
    struct scheme_choice prior = *choice;
    size_t i = 0;
    rx->automatic->named = (struct auto_named){.unplanned = SCHEME_NAME_PLAIN};
    if (!has_prior(rx) || bytes < PRIOR_CHUNKS_MIN * (uint64_t)rx->attr->chunk_bytes ||
        !is_short(rx, bytes))
        return;
    while (rx->automatic->estimate.chunks_seen >= priors[i].until_chunks)
        i++;
    prior.scheme = scheme_table_machines(priors[i].scheme, strlen(priors[i].scheme));
    int error = prior.scheme->parse("", prior.params);
    assert(!error); /* of this build */
    if (!prior_suits(rx, &prior, bytes))
        return;
    rx->automatic->named.unplanned = priors[i].scheme;
    *choice = prior;
}

static void choose_planned(struct rx *rx, uint64_t capacity, lh_time now, struct scheme_choice *choice)
{
    struct auto_scheme *a = rx->automatic;
    uint32_t number = AUTO_CHOICE_NONE;
    if (hold_choice(rx)) {
        struct auto_path path = path_of(rx);
        a->choice->pausing = now < a->choice->pause_until;
        number = auto_choice_get(a->choice, capacity, &path);
    }
    if (number == AUTO_CHOICE_NONE) {
        choose_prior(rx, capacity, choice);
        return;
    }
    const struct auto_candidate *candidate = &a->choice->candidates[number];
    struct scheme_choice chosen = *choice;
    chosen.scheme = candidate->scheme;
    memcpy(chosen.params, candidate->params, sizeof chosen.params);
    if (!can_cut(rx, &chosen, capacity))
        return;
    name_candidate(a, number);
    *choice = chosen;
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
    if (rx->choice.automatic)
        rx->automatic->named = (struct auto_named){.unplanned = SCHEME_NAME_PLAIN};
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
static bool is_reordered(const struct auto_scheme *a, const struct rx_segment *segment)
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
        .later_arrived = known && (is_reordered(a, segment) ||
                                   segment->coded.arrived > 0), /* parity is sent after the data */
        .paused = a->arrival_ns != LH_TIME_NEVER && now - a->arrival_ns > pause,
    };
}

void auto_scheme_poll(struct rx *rx, struct rx_segment *segment, bool changed, lh_time now)
{
    struct auto_scheme *a = rx->automatic;
    if (!a)
        return;
    bool later = is_reordered(a, segment);
    bool fresh = later && !segment->later_arrived;
    if (!changed && !fresh && segment->watch.mark_at > now)
        return;
    segment->later_arrived = later;
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
    struct lh_model_scheme named = a->named.scheme;
    if (a->named.unplanned) {
        int error = lh_model_scheme_parse(a->named.unplanned, &named);
        assert(!error); /* of this build */
    }
    lh_model_scheme_format(&named, out->scheme, sizeof out->scheme);
    if (a->named.other_seconds > 0)
        lh_model_scheme_format(&a->named.other, out->other, sizeof out->other);
}

/* ---- waiting --------------------------------------------------------------------------------------- */

struct waiting_receive {
    struct rx_receive receive;
    struct waiting_receive *next;
};

bool receive_fits(const struct rx_receive *receive, uint64_t tag)
{
    return ((receive->tag ^ tag) & ~receive->ignore) == 0;
}

bool waiting_hold(struct waiting *waiting, struct store *store)
{
    if (!waiting->spare)
        waiting->spare = store_take(store, sizeof *waiting->spare);
    return waiting->spare != NULL;
}

void waiting_give_back(struct waiting *waiting, struct store *store)
{
    store_give(store, waiting->spare, sizeof *waiting->spare);
    waiting->spare = NULL;
}

void waiting_add(struct waiting *waiting, const struct rx_receive *receive)
{
    struct waiting_receive *added = waiting->spare;
    assert(added);
    waiting->spare = NULL;
    *added = (struct waiting_receive){.receive = *receive};
    *(waiting->first ? waiting->end : &waiting->first) = added;
    waiting->end = &added->next;
    waiting->count++;
}

static void take_out(struct waiting *waiting, struct store *store, struct waiting_receive **link)
{
    struct waiting_receive *taken = *link;
    *link = taken->next;
    if (waiting->end == &taken->next)
        waiting->end = link;
    waiting->count--;
    if (waiting->spare)
        store_give(store, taken, sizeof *taken);
    else
        waiting->spare = taken;
}

bool waiting_take(struct waiting *waiting, struct store *store, uint64_t tag, struct rx_receive *receive)
{
    for (struct waiting_receive **link = &waiting->first; *link; link = &(*link)->next) { /* MESSAGES_MAX */
        if (!receive_fits(&(*link)->receive, tag))
            continue;
        *receive = (*link)->receive;
        take_out(waiting, store, link);
        return true;
    }
    return false;
}

bool waiting_remove(struct waiting *waiting, struct store *store, const struct message_request *request)
{
    for (struct waiting_receive **link = &waiting->first; *link; link = &(*link)->next) /* MESSAGES_MAX */
        if ((*link)->receive.request == request) {
            take_out(waiting, store, link);
            return true;
        }
    return false;
}

bool waiting_pop(struct waiting *waiting, struct store *store, struct rx_receive *receive)
{
    if (!waiting->first)
        return false;
    *receive = waiting->first->receive;
    take_out(waiting, store, &waiting->first);
    return true;
}
