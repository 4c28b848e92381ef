/*
 * dcqcn_control.c - see dcqcn_control.h.
 *
 * Timers: those of dcqcn.h, which run in round trips.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/dcqcn_control.h"

#include <math.h>

#include <longhaul/units.h>

#include "congestion/dcqcn.h"
#include "congestion/keys.h"
#include "congestion/round_trips.h"
#include "congestion/share.h"

/* Of timers, which run in round trips: at the least what the paper's notification point takes. */
#define TIMER_LEAST_NS  (50 * LH_NS_PER_US)
#define RECOVERY_STAGES 3u
#define STEP_PART       0.25
#define HYPER_STEPS     5.0
/* Alpha's interval is a round trip and not a fraction of it: as DCTCP's. */
#define ALPHA_GAIN (1.0 / 16)
/* A rate that brings no more is not raised: above this many times what was delivered. */
#define UNPROVEN_MOST  2.0
#define DELIVERED_KEPT (7.0 / 8)
/* In flight, of what the rate fills. */
#define WINDOW_GAIN 1.5
/* So long a pause raises the rate by no more than as many steps. */
#define PAUSE_STEPS 16

enum dcqcn_key { KEY_STEP, KEY_INCREASE };

static const struct congestion_keys keys = {
    "dcqcn",
    {[KEY_STEP] = {"step", "100kbit to 100Tbit", lh_parse_rate, DCQCN_STEP_MIN_BPS, DCQCN_RATE_MAX_BPS},
     [KEY_INCREASE] = {"increase", "1us to 10s", lh_parse_time, LH_NS_PER_US, 10 * LH_NS_PER_S}}};

struct dcqcn_control {
    struct lh_congestion_path path;
    struct round_trips rounds;
    struct dcqcn_config config; /* by the round trip, renewed with each */
    struct dcqcn rate;
    uint64_t step_bps;    /* told; 0: by the path */
    lh_time increase_ns;  /* told; 0: by the path */
    double delivered_bps; /* highest of late */
    bool limited;         /* the last of these, by what was sent */
    bool doubling;        /* each round trip, until the first sign of congestion */
};

static int control_parse(const char *text, uint8_t params[LH_CONGESTION_PARAMS])
{
    return congestion_keys_parse(&keys, text, params);
}

/* ---- configuration --------------------------------------------------------------------------------- */

static double window_bytes(const struct dcqcn_control *control)
{
    return share_bytes_of((double)control->rate.rate_bps, (double)control->rounds.minimum_ns);
}

static lh_time within_span(lh_time ns, lh_time least_ns)
{
    lh_time span_ns = ns > least_ns ? ns : least_ns;
    return span_ns < DCQCN_SPAN_MAX_NS ? span_ns : DCQCN_SPAN_MAX_NS;
}

static uint64_t within_steps(double step_bps)
{
    return (uint64_t)fmin(fmax(step_bps, (double)DCQCN_STEP_MIN_BPS), (double)DCQCN_RATE_MAX_BPS);
}

static void configure(struct dcqcn_control *control)
{
    lh_time rtt_ns = control->rounds.minimum_ns + control->rounds.queue_ns;
    double step_bps = (double)control->step_bps;
    if (step_bps == 0 && rtt_ns != 0)
        step_bps =
            share_rate_of(share_step_bytes(window_bytes(control), control->path.mtu_bytes), (double)rtt_ns);
    control->config = (struct dcqcn_config){
        .alpha_ns = within_span(rtt_ns, TIMER_LEAST_NS),
        .decrease_ns = within_span(rtt_ns, TIMER_LEAST_NS),
        .increase_ns =
            control->increase_ns != 0 ? control->increase_ns : within_span(rtt_ns, TIMER_LEAST_NS),
        .additive_bps = within_steps(step_bps),
        .hyper_bps = within_steps(HYPER_STEPS * step_bps),
        .least_bps = DCQCN_STEP_MIN_BPS,
        .recovery_stages = RECOVERY_STAGES,
        .gain = ALPHA_GAIN,
        .clamp = true,
    };
}

/* ---- the rate, where the machine does not set it --------------------------------------------------- */

static void set_rate(struct dcqcn_control *control, double rate_bps, lh_time now)
{
    struct dcqcn *rate = &control->rate;
    double line_bps = (double)rate->line_bps;
    rate->rate_bps = (uint64_t)fmin(fmax(rate_bps, fmin((double)DCQCN_STEP_MIN_BPS, line_bps)), line_bps);
    rate->target_bps = rate->rate_bps;
    if (rate->rate_bps < rate->line_bps && rate->increase_at == LH_TIME_NEVER)
        rate->increase_at = now + control->config.increase_ns;
}

static bool rate_is_known(const struct dcqcn_control *control)
{
    return !control->doubling || control->rounds.minimum_ns != 0;
}

static void control_start(void *state, const struct lh_congestion_path *path,
                          const uint8_t params[LH_CONGESTION_PARAMS], lh_time now)
{
    struct dcqcn_control *control = state;
    uint64_t line_bps = path->rate_bps != 0 ? path->rate_bps : DCQCN_RATE_MAX_BPS;
    line_bps = (uint64_t)fmin((double)line_bps, (double)share_rate_within(SHARE_RATE_MAX_BPS, path));
    *control = (struct dcqcn_control){
        .path = *path,
        .step_bps = congestion_keys_value(params, KEY_STEP, 0),
        .increase_ns = congestion_keys_value(params, KEY_INCREASE, 0),
        .doubling = path->rate_bps == 0,
    };
    round_trips_init(&control->rounds, path);
    control->rounds.slowed_by_delay = true;
    dcqcn_init(&control->rate, line_bps > 0 ? line_bps : 1);
    configure(control);
    if (control->doubling && path->rtt_ns != 0)
        set_rate(control, share_rate_of(share_first_window_bytes(path), (double)path->rtt_ns), now);
}

/* ---- events ---------------------------------------------------------------------------------------- */

/* What was due before a long pause is due at the end of it. */
static void skip_pause(lh_time *due_ns, lh_time from_ns)
{
    if (*due_ns < from_ns)
        *due_ns = from_ns;
}

static double proven_bps(const struct dcqcn_control *control)
{
    return control->delivered_bps > 0 ? UNPROVEN_MOST * control->delivered_bps : SHARE_RATE_MAX_BPS;
}

static void until(struct dcqcn_control *control, lh_time now)
{
    struct dcqcn *rate = &control->rate;
    uint64_t before_bps = rate->rate_bps;
    lh_time pause_ns = PAUSE_STEPS * control->config.increase_ns;
    if (now > pause_ns) {
        skip_pause(&rate->increase_at, now - pause_ns);
        skip_pause(&rate->decrease_at, now - pause_ns);
    }
    if (control->doubling)
        return; /* the machine waits for the first notification */
    dcqcn_on_time(rate, &control->config, now);
    double most_bps = proven_bps(control);
    if (control->limited) /* little may have been delivered because little was sent */
        most_bps = fmax(most_bps, (double)before_bps);
    if ((double)rate->rate_bps > most_bps)
        set_rate(control, most_bps, now);
}

static void notify(struct dcqcn_control *control, const struct lh_congestion_feedback *feedback)
{
    if (control->doubling) {
        double rate_bps = (double)control->rate.rate_bps;
        double delivered_bps = share_delivered_bps(feedback);
        set_rate(control, delivered_bps > 0 ? fmin(delivered_bps, rate_bps) : rate_bps / 2, feedback->now);
        control->doubling = false;
    }
    round_trips_on_cut(&control->rounds);
    dcqcn_on_cnp(&control->rate, &control->config, feedback->now);
}

static void double_rate(struct dcqcn_control *control, const struct lh_congestion_feedback *feedback)
{
    double bytes = window_bytes(control);
    bool used = (double)feedback->in_flight_at_send_bytes >= bytes / 2;
    if (used || bytes <= control->path.mtu_bytes)
        set_rate(control,
                 (double)control->rate.rate_bps *
                     (1 + fmin((double)feedback->arrived_bytes / fmax(bytes, 1), 1)),
                 feedback->now);
}

static void learn_delivered(struct dcqcn_control *control, const struct lh_congestion_feedback *feedback,
                            bool round_ended)
{
    double rate_bps = (double)feedback->rate_bps;
    if (rate_bps == 0 &&
        feedback->rtt_ns != 0) /* all that was in flight came in one report: at least this */
        rate_bps = share_rate_of((double)feedback->arrived_bytes, (double)feedback->rtt_ns);
    control->limited = feedback->rate_is_limited || feedback->rate_bps == 0;
    if (round_ended && !feedback->rate_is_limited)
        control->delivered_bps *= DELIVERED_KEPT;
    control->delivered_bps = fmax(control->delivered_bps, rate_bps);
}

/* Where nothing marks: a queue of a round trip, or more loss than chance. */
static bool is_congested_unmarked(struct dcqcn_control *control)
{
    lh_time rtt_ns = control->rounds.minimum_ns;
    bool lossy = round_trips_excess_loss(&control->rounds) > 0;
    return lossy || control->rounds.queue_ns > within_span(rtt_ns, TIMER_LEAST_NS);
}

/* Any one report of half a round trip ends the doubling. */
static bool has_doubled_enough(const struct dcqcn_control *control,
                               const struct lh_congestion_feedback *feedback)
{
    lh_time rtt_ns = control->rounds.minimum_ns;
    return control->doubling &&
           round_trips_queue_ns(&control->rounds, feedback) > within_span(rtt_ns / 2, TIMER_LEAST_NS);
}

static void control_on_feedback(void *state, const struct lh_congestion_feedback *feedback)
{
    struct dcqcn_control *control = state;
    bool known = rate_is_known(control);
    bool ended = round_trips_on_feedback(&control->rounds, feedback, control->rounds.minimum_ns);
    if (!known && control->rounds.minimum_ns != 0)
        set_rate(
            control,
            share_rate_of(share_first_window_bytes(&control->path), (double)control->rounds.minimum_ns),
            feedback->now);
    learn_delivered(control, feedback, ended);
    until(control, feedback->now);
    bool congested =
        feedback->marked_bytes > 0 || feedback->notifications > 0 || has_doubled_enough(control, feedback);
    if (ended) {
        configure(control);
        congested = is_congested_unmarked(control) || congested;
    }
    if (congested)
        notify(control, feedback);
    else if (control->doubling && feedback->rtt_ns != 0)
        double_rate(control, feedback);
}

static void control_on_timer(void *state, lh_time now)
{
    until(state, now);
}

/* An increase that would not be made needs no timer; the next report brings it about. */
static lh_time next_ns(const struct dcqcn_control *control)
{
    const struct dcqcn *rate = &control->rate;
    bool raises = (double)rate->rate_bps < proven_bps(control);
    return control->doubling || (!raises && !rate->cnp_for_decrease) ? LH_TIME_NEVER
                                                                     : dcqcn_next_expiry(rate);
}

static void control_decide(const void *state, lh_time now, struct lh_congestion_decision *decision)
{
    const struct dcqcn_control *control = state;
    (void)now;
    double bytes = share_first_window_bytes(&control->path);
    if (control->rounds.minimum_ns != 0)
        bytes = WINDOW_GAIN * window_bytes(control);
    *decision = (struct lh_congestion_decision){
        .rate_bps = share_rate_within((double)control->rate.rate_bps, &control->path),
        .window_bytes = share_window_within(bytes, &control->path),
        .total_bytes = UINT64_MAX,
        .burst_bytes = share_burst_bytes(bytes, &control->path),
        .next_ns = next_ns(control),
    };
}

static void control_view(const void *state, struct lh_congestion_view *view)
{
    const struct dcqcn_control *control = state;
    *view = (struct lh_congestion_view){
        .bandwidth_bps = (uint64_t)control->delivered_bps,
        .rtt_minimum_ns = control->rounds.minimum_ns,
        .state = control->doubling ? "startup" : "cruise",
    };
}

const struct lh_congestion dcqcn_congestion = {
    .name = "dcqcn",
    .help = "step=RATE: additive increase (default: by the root of the window), increase=TIME: between "
            "increases"
            " (default: a round trip, 50us or more); needs ECN marks",
    .parse = control_parse,
    .state_bytes = sizeof(struct dcqcn_control),
    .start = control_start,
    .on_feedback = control_on_feedback,
    .on_timer = control_on_timer,
    .decide = control_decide,
    .view = control_view,
};
