/*
 * timely.c - see timely.h.
 *
 * The rate changes once a round trip, which the feedback shows: no timers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/controllers.h"

#include <math.h>

#include <longhaul/units.h>

#include "base/error.h"
#include "congestion/flight.h"

/* Table 1 of the paper: weight of the newest difference, cut, and completions before the fast increase. */
#define NEWEST_WEIGHT 0.875
#define CUT_GAIN      0.8
#define QUIET_ROUNDS  5
#define CUT_MAX       0.5
/* Below `low` nothing forms a queue, above `high` the gradient does not matter. */
#define LOW_BASE_NS  1000.0
#define LOW_OF_RTT   (1.0 / 64)
#define HIGH_BASE_NS 10000.0
#define HIGH_OF_RTT  (1.0 / 8)

enum timely_key { KEY_LOW, KEY_HIGH };

static const struct congestion_keys keys = {
    "timely",
    {[KEY_LOW] = {"low", "1us to 10s", lh_parse_time, LH_NS_PER_US, 10 * LH_NS_PER_S},
     [KEY_HIGH] = {"high", "1us to 10s", lh_parse_time, LH_NS_PER_US, 10 * LH_NS_PER_S}}};

struct timely {
    struct lh_congestion_path path;
    struct round_trips rounds;
    double low_ns, high_ns; /* told; 0: by the path */
    double rate_bps;        /* 0: no round trip is known yet, the first window leaves at once */
    double previous_ns;     /* queueing delay of the round before; below 0: none */
    double difference_ns;   /* between rounds, smoothed */
    uint32_t quiet_rounds;
    bool doubling; /* each round trip, until a queue forms */
};

static int timely_parse(const char *text, uint8_t params[LH_CONGESTION_PARAMS])
{
    uint8_t parsed[LH_CONGESTION_PARAMS];
    int failed = congestion_keys_parse(&keys, text, parsed);
    if (failed != 0)
        return failed;
    lh_time low_ns = congestion_keys_value(parsed, KEY_LOW, 1);
    lh_time high_ns = congestion_keys_value(parsed, KEY_HIGH, LH_TIME_NEVER);
    if (low_ns >= high_ns)
        return lh_fail(LH_EINVAL, "timely: low of %lluns is not below high of %lluns",
                       (unsigned long long)low_ns, (unsigned long long)high_ns);
    for (size_t i = 0; i < LH_CONGESTION_PARAMS; i++)
        params[i] = parsed[i];
    return 0;
}

static void set_rate(struct timely *timely, double rate_bps)
{
    /* Two packets a round trip: less brings so few reports that the rate stays there. */
    double min_bps = share_rate_of(2.0 * timely->path.mtu_bytes, (double)timely->rounds.minimum_ns);
    timely->rate_bps = fmin(fmax(rate_bps, fmax(min_bps, SHARE_RATE_MIN_BPS)), SHARE_RATE_MAX_BPS);
}

static void learn_round_trip(struct timely *timely)
{
    if (timely->rate_bps == 0 && timely->rounds.minimum_ns != 0)
        set_rate(timely,
                 share_rate_of(share_first_window_bytes(&timely->path), (double)timely->rounds.minimum_ns));
}

static void timely_start(void *state, const struct lh_congestion_path *path,
                         const uint8_t params[LH_CONGESTION_PARAMS], lh_time now)
{
    struct timely *timely = state;
    (void)now;
    *timely = (struct timely){
        .path = *path,
        .low_ns = (double)congestion_keys_value(params, KEY_LOW, 0),
        .high_ns = (double)congestion_keys_value(params, KEY_HIGH, 0),
        .previous_ns = -1,
        .doubling = path->rate_bps == 0,
    };
    round_trips_init(&timely->rounds, path);
    timely->rounds.slowed_by_delay = true;
    learn_round_trip(timely);
}

/* ---- delays ---------------------------------------------------------------------------------------- */

static double low_ns(const struct timely *timely)
{
    double by_path_ns = LOW_BASE_NS + LOW_OF_RTT * (double)timely->rounds.minimum_ns;
    if (timely->low_ns != 0)
        return timely->low_ns;
    return timely->high_ns != 0 ? fmin(by_path_ns, timely->high_ns / 2) : by_path_ns;
}

static double high_ns(const struct timely *timely)
{
    if (timely->high_ns != 0)
        return timely->high_ns;
    return fmax(HIGH_BASE_NS + HIGH_OF_RTT * (double)timely->rounds.minimum_ns, 2 * low_ns(timely));
}

static double window_bytes(const struct timely *timely)
{
    return share_bytes_of(timely->rate_bps, (double)timely->rounds.minimum_ns);
}

/* Between the two: what a flow of this rate aims at. */
static double reference_ns(const struct timely *timely)
{
    double low = low_ns(timely);
    return low + (high_ns(timely) - low) * share_smallness(window_bytes(timely), timely->path.mtu_bytes);
}

/* ---- the rate -------------------------------------------------------------------------------------- */

static double step_bps(const struct timely *timely)
{
    double step_bytes = share_step_bytes(window_bytes(timely), timely->path.mtu_bytes);
    return share_rate_of(step_bytes, (double)timely->rounds.minimum_ns);
}

static void cut(struct timely *timely, double part)
{
    set_rate(timely, timely->rate_bps * (1 - fmin(part, CUT_MAX)));
}

/* Between low and high: by the gradient and by the distance from the reference, without which any delay
 * would be a fixed point, and any shares. */
static void follow_gradient(struct timely *timely, double queue_ns)
{
    double rtt_ns = (double)timely->rounds.minimum_ns;
    double gradient = timely->difference_ns / rtt_ns;
    double weight = fmin(fmax(2 * gradient + 0.5, 0), 1);
    double over = (queue_ns - reference_ns(timely)) / (rtt_ns + queue_ns);
    double rate_bps = timely->rate_bps + step_bps(timely) * (1 - weight);
    set_rate(timely, rate_bps - timely->rate_bps * fmin(CUT_GAIN * weight * over, CUT_MAX));
}

/* What was delivered fits; the rate is up to twice as much by now. */
static void end_doubling(struct timely *timely, const struct lh_congestion_feedback *feedback)
{
    double delivered_bps = share_delivered_bps(feedback);
    timely->doubling = false;
    timely->quiet_rounds = 0;
    round_trips_on_cut(&timely->rounds);
    set_rate(timely, delivered_bps > 0 ? fmin(delivered_bps, timely->rate_bps) : timely->rate_bps / 2);
}

static void control(struct timely *timely, double queue_ns)
{
    double high = high_ns(timely);
    if (queue_ns < low_ns(timely))
        set_rate(timely, timely->rate_bps + step_bps(timely));
    else if (queue_ns > high)
        cut(timely, CUT_GAIN * (queue_ns - high) / ((double)timely->rounds.minimum_ns + queue_ns));
    if (queue_ns >= low_ns(timely))
        follow_gradient(timely, fmin(queue_ns, high));
}

static void on_round(struct timely *timely, const struct lh_congestion_feedback *feedback)
{
    double queue_ns = (double)timely->rounds.queue_ns;
    double lost = round_trips_excess_loss(&timely->rounds);
    if (timely->previous_ns >= 0)
        timely->difference_ns =
            (1 - NEWEST_WEIGHT) * timely->difference_ns + NEWEST_WEIGHT * (queue_ns - timely->previous_ns);
    timely->previous_ns = queue_ns;
    bool limited = feedback->rate_is_limited;
    timely->quiet_rounds =
        queue_ns < low_ns(timely) && lost == 0 && !limited ? timely->quiet_rounds + 1 : 0;
    timely->doubling = lost == 0 && (timely->doubling || timely->quiet_rounds >= QUIET_ROUNDS);
    if (lost > 0) {
        cut(timely, lost);
        round_trips_on_cut(&timely->rounds);
    } else if (!timely->doubling && !(limited && queue_ns < low_ns(timely))) {
        control(timely, queue_ns);
    }
}

/* Doubling goes on with each report, and ends with the first that shows a queue. */
static void double_rate(struct timely *timely, const struct lh_congestion_feedback *feedback)
{
    double bytes = window_bytes(timely);
    if ((double)round_trips_queue_ns(&timely->rounds, feedback) > reference_ns(timely))
        end_doubling(timely, feedback);
    else if ((double)feedback->in_flight_at_send_bytes >= bytes / 2 || bytes <= timely->path.mtu_bytes)
        set_rate(timely,
                 timely->rate_bps * (1 + fmin((double)feedback->arrived_bytes / fmax(bytes, 1), 1)));
}

static void timely_on_feedback(void *state, const struct lh_congestion_feedback *feedback)
{
    struct timely *timely = state;
    double reference = timely->rate_bps != 0 ? reference_ns(timely) : 0;
    bool ended = round_trips_on_feedback(&timely->rounds, feedback, (lh_time)reference);
    learn_round_trip(timely);
    if (feedback->rtt_ns == 0)
        return;
    if (timely->doubling)
        double_rate(timely, feedback);
    if (ended)
        on_round(timely, feedback);
}

static void timely_on_timer(void *state, lh_time now)
{
    (void)state, (void)now;
}

/* In flight is what the rate fills while the queue is where it should be: an error of the rate does not add
 * up in the queue. */
static void timely_decide(const void *state, lh_time now, struct lh_congestion_decision *decision)
{
    const struct timely *timely = state;
    (void)now;
    double rate_bps = SHARE_RATE_MAX_BPS;
    double bytes = share_first_window_bytes(&timely->path);
    if (timely->rate_bps != 0) {
        rate_bps = timely->rate_bps;
        bytes = share_bytes_of(rate_bps, (double)timely->rounds.minimum_ns + reference_ns(timely));
    } else if (timely->path.rate_bps != 0) {
        rate_bps = (double)timely->path.rate_bps;
    }
    *decision = (struct lh_congestion_decision){
        .rate_bps = share_rate_within(rate_bps, &timely->path),
        .window_bytes = share_window_within(bytes, &timely->path),
        .total_bytes = UINT64_MAX,
        .burst_bytes = share_burst_bytes(bytes, &timely->path),
        .next_ns = LH_TIME_NEVER,
    };
}

static void timely_view(const void *state, struct lh_congestion_view *view)
{
    const struct timely *timely = state;
    *view = (struct lh_congestion_view){
        .rtt_minimum_ns = timely->rounds.minimum_ns,
        .state = timely->doubling ? "startup" : "cruise",
    };
}

const struct lh_congestion timely_congestion = {
    .name = "timely",
    .help = "low=TIME, high=TIME: queueing delays below which the rate always grows and above which it "
            "always falls"
            " (default: 1us + round trip / 64, 10us + round trip / 8)",
    .parse = timely_parse,
    .state_bytes = sizeof(struct timely),
    .start = timely_start,
    .on_feedback = timely_on_feedback,
    .on_timer = timely_on_timer,
    .decide = timely_decide,
    .view = timely_view,
};
