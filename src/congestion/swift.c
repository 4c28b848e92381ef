/*
 * swift.c - see swift.h.
 *
 * No timers: what is overdue comes as feedback, too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/controllers.h"

#include <math.h>

#include <longhaul/units.h>

#include "congestion/flight.h"

/* Section 3.1 and 3.2 of the paper: beta and max_mdf. */
#define CUT_GAIN 0.8
#define CUT_MAX  0.5
/* The target of a large flow: of the path's shortest round trip, and of hosts and switches. */
#define TARGET_OF_RTT  (1.0 / 32)
#define TARGET_BASE_NS 2000.0
/* Quiet for as many round trips: the path has become faster. */
#define QUIET_ROUNDS 16
#define PACING_GAIN  1.25
/* Less brings a report in many round trips, with the delay of one packet: jitter would keep it there. */
#define WINDOW_MIN_PACKETS 1.0

enum swift_key { KEY_TARGET };

static const struct congestion_keys keys = {
    "swift", {[KEY_TARGET] = {"target", "1us to 10s", lh_parse_time, LH_NS_PER_US, 10 * LH_NS_PER_S}}};

struct swift {
    struct lh_congestion_path path;
    struct round_trips rounds;
    double target_ns; /* told; 0: by the path */
    double window_bytes;
    uint32_t quiet_rounds;
    bool doubling;   /* each round trip, until a queue forms */
    bool cut_before; /* at the end of the last round trip: the delays of this one are from before */
};

static int swift_parse(const char *text, uint8_t params[LH_CONGESTION_PARAMS])
{
    return congestion_keys_parse(&keys, text, params);
}

static void swift_start(void *state, const struct lh_congestion_path *path,
                        const uint8_t params[LH_CONGESTION_PARAMS], lh_time now)
{
    struct swift *swift = state;
    (void)now;
    *swift = (struct swift){
        .path = *path,
        .target_ns = (double)congestion_keys_value(params, KEY_TARGET, 0),
        .window_bytes = share_first_window_bytes(path),
        .doubling = path->rate_bps == 0,
    };
    round_trips_init(&swift->rounds, path);
    swift->rounds.slowed_by_delay = true;
}

/* Delay above the minimum that this flow aims at. */
static double target_ns(const struct swift *swift)
{
    double base_ns = swift->target_ns;
    if (base_ns == 0)
        base_ns = TARGET_BASE_NS + TARGET_OF_RTT * (double)swift->rounds.minimum_ns;
    return share_target_ns(base_ns, swift->window_bytes, swift->path.mtu_bytes);
}

static void set_window(struct swift *swift, double window_bytes)
{
    double minimum = WINDOW_MIN_PACKETS * swift->path.mtu_bytes;
    double maximum = (double)swift->path.window_max_bytes;
    swift->window_bytes = fmin(fmax(window_bytes, minimum), maximum);
}

static void cut(struct swift *swift, double part)
{
    set_window(swift, swift->window_bytes * (1 - fmin(part, CUT_MAX)));
    swift->cut_before = true;
    round_trips_on_cut(&swift->rounds);
}

/* What has been delivered in a round trip fits; what is in flight by now is up to twice as much. */
static void end_doubling(struct swift *swift, const struct lh_congestion_feedback *feedback)
{
    double delivered = swift->window_bytes / 2;
    double delivered_bps = share_delivered_bps(feedback);
    if (delivered_bps > 0)
        delivered = share_bytes_of(delivered_bps, (double)swift->rounds.minimum_ns + target_ns(swift));
    set_window(swift, fmin(delivered, swift->window_bytes));
    swift->quiet_rounds = 0;
    swift->doubling = false;
    swift->cut_before = true;
    round_trips_on_cut(&swift->rounds);
}

static void grow(struct swift *swift, const struct lh_congestion_feedback *feedback)
{
    /* A window that is not used says nothing about the path. */
    if ((double)feedback->in_flight_at_send_bytes < swift->window_bytes / 2 &&
        swift->window_bytes > swift->path.mtu_bytes)
        return;
    double arrived = fmin((double)feedback->arrived_bytes, swift->window_bytes);
    double part = swift->doubling ? 1
                                  : share_step_bytes(swift->window_bytes, swift->path.mtu_bytes) /
                                        fmax(swift->window_bytes, swift->path.mtu_bytes);
    set_window(swift, swift->window_bytes + part * arrived);
}

/* Up with each report. */
static void on_delay(struct swift *swift, const struct lh_congestion_feedback *feedback)
{
    if ((double)round_trips_queue_ns(&swift->rounds, feedback) < target_ns(swift))
        grow(swift, feedback);
    else if (swift->doubling)
        end_doubling(swift, feedback);
}

/* Down by what each packet of a round trip waited: the lowest delay knows nothing of hosts that were late. */
static void on_round(struct swift *swift, const struct lh_congestion_feedback *feedback)
{
    double queue_ns = (double)swift->rounds.queue_ns;
    double over_ns = queue_ns - target_ns(swift);
    double lost = round_trips_excess_loss(&swift->rounds);
    bool quiet = queue_ns < target_ns(swift) / 2 && lost == 0 && !feedback->rate_is_limited;
    swift->quiet_rounds = quiet ? swift->quiet_rounds + 1 : 0;
    if (swift->quiet_rounds >= QUIET_ROUNDS) {
        swift->doubling = true;
        swift->quiet_rounds = 0;
    }
    if (lost > 0)
        swift->doubling = false;
    if (swift->cut_before)
        swift->cut_before = false;
    else if (lost > 0)
        cut(swift, lost);
    else if (over_ns > 0)
        cut(swift, CUT_GAIN * over_ns / ((double)swift->rounds.minimum_ns + queue_ns));
}

static void swift_on_feedback(void *state, const struct lh_congestion_feedback *feedback)
{
    struct swift *swift = state;
    bool ended = round_trips_on_feedback(&swift->rounds, feedback, (lh_time)target_ns(swift));
    if (feedback->rtt_ns == 0)
        return;
    on_delay(swift, feedback);
    if (ended)
        on_round(swift, feedback);
}

static void swift_on_timer(void *state, lh_time now)
{
    (void)state, (void)now;
}

static double rate_bps(const struct swift *swift)
{
    if (swift->rounds.minimum_ns == 0)
        return swift->path.rate_bps != 0 ? (double)swift->path.rate_bps : SHARE_RATE_MAX_BPS;
    return PACING_GAIN * share_rate_of(swift->window_bytes, (double)swift->rounds.minimum_ns);
}

static void swift_decide(const void *state, lh_time now, struct lh_congestion_decision *decision)
{
    const struct swift *swift = state;
    (void)now;
    *decision = (struct lh_congestion_decision){
        .rate_bps = share_rate_within(rate_bps(swift), &swift->path),
        .window_bytes = share_window_within(swift->window_bytes, &swift->path),
        .total_bytes = UINT64_MAX,
        .burst_bytes = share_burst_bytes(swift->window_bytes, &swift->path),
        .next_ns = LH_TIME_NEVER,
    };
}

static void swift_view(const void *state, struct lh_congestion_view *view)
{
    const struct swift *swift = state;
    *view = (struct lh_congestion_view){
        .rtt_minimum_ns = swift->rounds.minimum_ns,
        .state = swift->doubling ? "startup" : "cruise",
    };
}

const struct lh_congestion swift_congestion = {
    .name = "swift",
    .help = "target=TIME: target queueing delay of a large flow (default: 2us + round trip / 32)",
    .parse = swift_parse,
    .state_bytes = sizeof(struct swift),
    .start = swift_start,
    .on_feedback = swift_on_feedback,
    .on_timer = swift_on_timer,
    .decide = swift_decide,
    .view = swift_view,
};
