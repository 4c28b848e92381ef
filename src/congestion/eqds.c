/* SPDX-License-Identifier: BSD-3-Clause */
#include "congestion/eqds.h"

#include <assert.h>
#include <math.h>

#include <longhaul/congestion.h>
#include <longhaul/units.h>

#include "congestion/controllers.h"
#include "congestion/flight.h"

/* ---- eqds receiver --------------------------------------------------------------------------------- */

/* One timer, of the caller: when the pace has more credits to grant. */

/* The target of a large flow, above the shortest loop. */
#define TARGET_OF_RTT  (1.0 / 16)
#define TARGET_BASE_NS 1000.0
#define PACE_GAIN      1.25
/* Of a change of the window, each round trip. */
#define SMOOTHING    0.5
#define STEP_PART    0.25
#define QUIET_ROUNDS 16
/* Silence of as many loops: the sender had nothing to send. */
#define PAUSE_LOOPS 2
#define MIN_PACKETS 2

static double target_ns(const struct eqds_receiver *receiver)
{
    double base_ns = TARGET_BASE_NS + TARGET_OF_RTT * (double)receiver->rounds.minimum_ns;
    return share_target_ns(base_ns, receiver->window_bytes, receiver->path.mtu_bytes);
}

static void set_window(struct eqds_receiver *receiver, double bytes)
{
    double maximum = (double)receiver->path.window_max_bytes;
    double minimum = MIN_PACKETS * (double)receiver->path.mtu_bytes;
    receiver->window_bytes = fmin(fmax(bytes, minimum), maximum);
}

void eqds_receiver_start(struct eqds_receiver *receiver, const struct lh_congestion_path *path,
                         double first_bytes, double pace_max_bps, lh_time now)
{
    *receiver = (struct eqds_receiver){
        .path = *path,
        .pace_max_bps = pace_max_bps,
        .paced_ns = now,
        .arrived_ns = now,
        .doubling = path->rate_bps == 0,
    };
    round_trips_init(&receiver->rounds, path);
    set_window(receiver, first_bytes);
}

/* ---- the window ------------------------------------------------------------------------------------ */

/* Towards what arrives in the shortest loop and the target: the same for all flows of a queue when their
 * windows are. The step lets a small one catch up. */
static void follow_delay(struct eqds_receiver *receiver)
{
    double loop_ns = (double)receiver->rounds.minimum_ns + (double)receiver->rounds.queue_ns;
    double ratio = ((double)receiver->rounds.minimum_ns + target_ns(receiver)) / loop_ns;
    double bytes = receiver->window_bytes * (1 + SMOOTHING * (fmin(fmax(ratio, 0.5), 2) - 1));
    set_window(receiver, bytes + STEP_PART * share_step_bytes(bytes, receiver->path.mtu_bytes));
}

static void on_round(struct eqds_receiver *receiver)
{
    bool quiet = (double)receiver->rounds.queue_ns < target_ns(receiver) / 2;
    double marked = receiver->round_arrived > 0 ? receiver->round_marked / receiver->round_arrived : 0;
    receiver->round_arrived = receiver->round_marked = 0;
    receiver->quiet_rounds = quiet && marked == 0 ? receiver->quiet_rounds + 1 : 0;
    if (receiver->quiet_rounds >= QUIET_ROUNDS) {
        receiver->doubling = true;
        receiver->quiet_rounds = 0;
    }
    if (marked > 0) {
        receiver->doubling = false;
        set_window(receiver, receiver->window_bytes * (1 - fmin(marked, 1) / 2));
    } else if (!receiver->doubling) {
        follow_delay(receiver);
    }
}

/* By what arrived with little delay. Half the target may be that of the sender's pace. */
static void double_window(struct eqds_receiver *receiver, const struct lh_congestion_feedback *loop)
{
    double bytes = receiver->window_bytes;
    double target = target_ns(receiver);
    double queue_ns = (double)round_trips_queue_ns(&receiver->rounds, loop);
    receiver->doubling = queue_ns <= target;
    if (!receiver->doubling)
        bytes *= ((double)receiver->rounds.minimum_ns + target) / (double)loop->rtt_ns;
    else if (queue_ns <= target / 2)
        bytes += fmin(receiver->unproven_bytes, bytes);
    set_window(receiver, bytes);
}

static void on_loop(struct eqds_receiver *receiver, const struct eqds_mark *mark, lh_time now)
{
    struct lh_congestion_feedback feedback = {
        .rtt_ns = now > mark->granted_ns ? now - mark->granted_ns : 1,
        .arrived_total_bytes = receiver->arrived_bytes,
        .arrived_at_send_bytes = mark->arrived_bytes,
    };
    bool ended = round_trips_on_feedback(&receiver->rounds, &feedback, (lh_time)target_ns(receiver));
    if (receiver->doubling)
        double_window(receiver, &feedback);
    receiver->unproven_bytes = 0;
    if (ended)
        on_round(receiver);
}

/* A loop in which the sender had nothing to send is no measure. */
static void drop_marks_after_pause(struct eqds_receiver *receiver, lh_time now)
{
    lh_time pause_ns = now > receiver->arrived_ns ? now - receiver->arrived_ns : 0;
    lh_time loop_ns = receiver->rounds.minimum_ns + receiver->rounds.queue_ns;
    if (loop_ns != 0 && pause_ns / PAUSE_LOOPS > loop_ns)
        receiver->mark_count = 0;
    receiver->arrived_ns = now;
}

void eqds_receiver_on_arrived(struct eqds_receiver *receiver, uint64_t arrived_bytes, uint64_t marked_bytes,
                              lh_time now)
{
    drop_marks_after_pause(receiver, now);
    bool wraps = arrived_bytes > UINT64_MAX - receiver->arrived_bytes;
    receiver->arrived_bytes = wraps ? UINT64_MAX : receiver->arrived_bytes + arrived_bytes;
    receiver->round_arrived += (double)arrived_bytes;
    receiver->round_marked += (double)marked_bytes;
    receiver->unproven_bytes += (double)arrived_bytes;
    while (receiver->mark_count > 0) { /* each turn takes a mark */
        const struct eqds_mark mark = receiver->marks[receiver->first_mark];
        if (mark.credit_bytes > receiver->arrived_bytes)
            break;
        receiver->first_mark = (receiver->first_mark + 1) % EQDS_MARKS;
        receiver->mark_count--;
        on_loop(receiver, &mark, now);
    }
}

/* ---- credits --------------------------------------------------------------------------------------- */

static double pace_bps(const struct eqds_receiver *receiver)
{
    if (receiver->rounds.minimum_ns == 0)
        return receiver->pace_max_bps;
    double bps = PACE_GAIN * share_rate_of(receiver->window_bytes, (double)receiver->rounds.minimum_ns);
    return fmin(bps, receiver->pace_max_bps);
}

/* An eighth of the window apart. */
static void mark(struct eqds_receiver *receiver, lh_time now)
{
    if (receiver->mark_count == EQDS_MARKS)
        return;
    uint32_t at = (receiver->first_mark + receiver->mark_count) % EQDS_MARKS;
    const struct eqds_mark *last = &receiver->marks[(at + EQDS_MARKS - 1) % EQDS_MARKS];
    double apart = receiver->window_bytes / EQDS_MARKS;
    if (receiver->mark_count > 0 && (double)(receiver->credit_bytes - last->credit_bytes) < apart)
        return;
    receiver->marks[at] = (struct eqds_mark){receiver->credit_bytes, receiver->arrived_bytes, now};
    receiver->mark_count++;
}

uint64_t eqds_receiver_credit(struct eqds_receiver *receiver, lh_time now, lh_time *next_ns)
{
    uint64_t window = (uint64_t)fmin(receiver->window_bytes, 9e18);
    bool wraps = window > UINT64_MAX - receiver->arrived_bytes;
    uint64_t allowed = wraps ? UINT64_MAX - 1 : receiver->arrived_bytes + window;
    double pace = pace_bps(receiver);
    *next_ns = LH_TIME_NEVER;
    if (allowed <= receiver->credit_bytes) {
        receiver->paced_ns = now;
        return receiver->credit_bytes;
    }
    double wanted = (double)(allowed - receiver->credit_bytes);
    double paced = share_bytes_of(pace, (double)(now > receiver->paced_ns ? now - receiver->paced_ns : 0));
    if (receiver->credit_bytes == 0)
        paced = wanted; /* the first window: without waiting for anything */
    if (paced < wanted) {
        double later_bytes = fmax(receiver->window_bytes / EQDS_MARKS, receiver->path.mtu_bytes);
        double later_ns = later_bytes / share_bytes_of(pace, 1);
        *next_ns = later_ns < 1e18 && now < LH_TIME_NEVER / 2 ? now + (lh_time)later_ns + 1 : LH_TIME_NEVER;
        allowed = receiver->credit_bytes + (uint64_t)paced;
    }
    if (allowed > receiver->credit_bytes) {
        receiver->paced_ns = now;
        receiver->credit_bytes = allowed;
        mark(receiver, now);
    }
    return receiver->credit_bytes;
}

/* ---- eqds ------------------------------------------------------------------------------------------ */

/* No timers in the sender's half. */

#define PACING_GAIN 2.0
/* In flight at most, whatever a receiver grants: the first window and this many times what was delivered
 * in a round trip. */
#define DELIVERED_GAIN 2.0
#define DELIVERED_KEPT (7.0 / 8)

enum eqds_key { KEY_WINDOW, KEY_RATE };

static const struct congestion_keys keys = {
    "eqds",
    {[KEY_WINDOW] = {"window", "1kB to 1GB", lh_parse_size, 1000, 1000000000},
     [KEY_RATE] = {"rate", "100kbit to 100Tbit", lh_parse_rate, 100000, UINT64_C(100000000000000)}}};

struct eqds {
    struct lh_congestion_path path;
    struct round_trips rounds;
    double first_bytes;
    uint64_t total_bytes;      /* that may have been sent; UINT64_MAX: the receiver gives no credits */
    double granted_bytes;      /* in flight, by the receiver */
    double delivered_bps;      /* highest of late */
    double lossy_bytes;        /* in flight at most after more loss than chance; 0: no such bound */
    uint64_t flight_end_bytes; /* arrived in all once what was in flight at this round's beginning has */
};

static int eqds_parse(const char *text, uint8_t params[LH_CONGESTION_PARAMS])
{
    return congestion_keys_parse(&keys, text, params);
}

/* The speculative window, before a credit: also the receiver's smallest. */
static double first_window_bytes(const struct lh_congestion_path *path,
                                 const uint8_t params[LH_CONGESTION_PARAMS])
{
    double window = (double)congestion_keys_value(params, KEY_WINDOW, 0);
    window = window != 0 ? fmax(window, path->mtu_bytes) : share_first_window_bytes(path);
    return fmin(window, (double)path->window_max_bytes);
}

static void eqds_start(void *state, const struct lh_congestion_path *path,
                       const uint8_t params[LH_CONGESTION_PARAMS], lh_time now)
{
    struct eqds *eqds = state;
    (void)now;
    double first_bytes = first_window_bytes(path, params);
    *eqds = (struct eqds){
        .path = *path,
        .first_bytes = first_bytes,
        .total_bytes = share_window_within(first_bytes, path),
        .granted_bytes = first_bytes,
    };
    round_trips_init(&eqds->rounds, path);
}

/* What was lost uses no credit up: the receiver counts what it reads. */
static void take_credits(struct eqds *eqds, const struct lh_congestion_feedback *feedback)
{
    uint64_t lost = feedback->lost_total_bytes;
    uint64_t first = share_window_within(eqds->first_bytes, &eqds->path);
    uint64_t credit = feedback->credit_bytes > first ? feedback->credit_bytes : first;
    eqds->total_bytes = credit < UINT64_MAX - lost ? credit + lost : UINT64_MAX;
    bool ahead = feedback->credit_bytes > feedback->arrived_total_bytes;
    double granted = ahead ? (double)(feedback->credit_bytes - feedback->arrived_total_bytes) : 0;
    eqds->granted_bytes = fmax(granted, eqds->path.mtu_bytes);
}

static void grow(struct eqds *eqds)
{
    if (eqds->lossy_bytes == 0)
        return;
    double bytes = eqds->lossy_bytes + share_step_bytes(eqds->lossy_bytes, eqds->path.mtu_bytes);
    eqds->lossy_bytes = bytes < 2 * eqds->granted_bytes ? bytes : 0;
}

/* A queue that is too short for the receiver to see it as delay. */
static void eqds_on_round(struct eqds *eqds)
{
    double lost = round_trips_excess_loss(&eqds->rounds);
    double bytes = eqds->lossy_bytes;
    if (lost > 0) {
        bytes = bytes != 0 ? fmin(bytes, eqds->granted_bytes) : eqds->granted_bytes;
        eqds->lossy_bytes = fmax(bytes * (1 - lost), eqds->path.mtu_bytes);
        round_trips_on_cut(&eqds->rounds);
    } else {
        grow(eqds);
    }
}

/* A receiver that has no use for what arrives (a forged clear-to-send named its place) counts it, but no
 * packet of it is timed: as much has arrived as was in flight. */
static bool ends_untimed(const struct eqds *eqds, const struct lh_congestion_feedback *feedback)
{
    return feedback->rtt_ns == 0 && feedback->arrived_bytes > 0 &&
           feedback->arrived_total_bytes >= eqds->flight_end_bytes;
}

static void eqds_on_feedback(void *state, const struct lh_congestion_feedback *feedback)
{
    struct eqds *eqds = state;
    bool ended = round_trips_on_feedback(&eqds->rounds, feedback, eqds->rounds.minimum_ns);
    bool untimed = !ended && ends_untimed(eqds, feedback);
    take_credits(eqds, feedback);
    if (ended)
        eqds_on_round(eqds);
    else if (untimed)
        grow(eqds);
    if (ended || untimed)
        eqds->flight_end_bytes = feedback->arrived_total_bytes + feedback->in_flight_bytes;
    if (ended && !feedback->rate_is_limited)
        eqds->delivered_bps *= DELIVERED_KEPT;
    eqds->delivered_bps = fmax(eqds->delivered_bps, (double)feedback->rate_bps);
}

static void eqds_on_timer(void *state, lh_time now)
{
    (void)state, (void)now;
}

static double window_bytes(const struct eqds *eqds)
{
    double delivered = share_bytes_of(eqds->delivered_bps, (double)eqds->rounds.minimum_ns);
    double maximum = eqds->first_bytes + DELIVERED_GAIN * delivered;
    return eqds->lossy_bytes != 0 ? fmin(maximum, eqds->lossy_bytes) : maximum;
}

static void eqds_decide(const void *state, lh_time now, struct lh_congestion_decision *decision)
{
    const struct eqds *eqds = state;
    (void)now;
    double rate_bps = eqds->path.rate_bps != 0 ? (double)eqds->path.rate_bps : SHARE_RATE_MAX_BPS;
    double bytes = fmin(eqds->granted_bytes, window_bytes(eqds));
    if (eqds->rounds.minimum_ns != 0)
        rate_bps = PACING_GAIN * share_rate_of(bytes, (double)eqds->rounds.minimum_ns);
    *decision = (struct lh_congestion_decision){
        .rate_bps = share_rate_within(rate_bps, &eqds->path),
        .window_bytes = share_window_within(window_bytes(eqds), &eqds->path),
        .total_bytes = eqds->total_bytes,
        .burst_bytes = share_burst_bytes(bytes, &eqds->path),
        .next_ns = LH_TIME_NEVER,
    };
}

static void eqds_view(const void *state, struct lh_congestion_view *view)
{
    const struct eqds *eqds = state;
    *view = (struct lh_congestion_view){
        .bandwidth_bps = (uint64_t)eqds->delivered_bps,
        .rtt_minimum_ns = eqds->rounds.minimum_ns,
        .state = eqds->delivered_bps == 0 ? "startup" : "credits",
    };
}

/* ---- the receiver's half --------------------------------------------------------------------------- */

static void receiver_start(void *state, const struct lh_congestion_path *path,
                           const uint8_t params[LH_CONGESTION_PARAMS], lh_time now)
{
    double max_bps = (double)congestion_keys_value(params, KEY_RATE, 0);
    eqds_receiver_start(state, path, first_window_bytes(path, params),
                        max_bps != 0 ? max_bps : SHARE_RATE_MAX_BPS, now);
}

static void receiver_on_arrived(void *state, uint64_t arrived_bytes, uint64_t marked_bytes, lh_time now)
{
    eqds_receiver_on_arrived(state, arrived_bytes, marked_bytes, now);
}

static uint64_t receiver_credit(void *state, lh_time now, lh_time *next_ns)
{
    return eqds_receiver_credit(state, now, next_ns);
}

const struct lh_congestion eqds_congestion = {
    .name = "eqds",
    .help =
        "window=SIZE: first window, before credits (default: 10 packets, or by the rate given), rate=RATE:"
        " highest pace of credits (default: none)",
    .parse = eqds_parse,
    .state_bytes = sizeof(struct eqds),
    .start = eqds_start,
    .on_feedback = eqds_on_feedback,
    .on_timer = eqds_on_timer,
    .decide = eqds_decide,
    .view = eqds_view,
    .receiver_bytes = sizeof(struct eqds_receiver),
    .receiver_start = receiver_start,
    .receiver_on_arrived = receiver_on_arrived,
    .receiver_credit = receiver_credit,
};
