/* SPDX-License-Identifier: BSD-3-Clause */
#include "congestion/dcqcn.h"

#include <assert.h>
#include <math.h>

#include <longhaul/congestion.h>
#include <longhaul/types.h>
#include <longhaul/units.h>

#include "base/error.h"
#include "congestion/controllers.h"
#include "congestion/flight.h"

/* ---- dcqcn ----------------------------------------------------------------------------------------- */

/*
 * Timers, all of which first run at the first notification:
 *   alpha_at     every alpha_ns, for ever. It changes no rate, so it is only caught up with when a cut or a
 *                notification asks for alpha.
 *   decrease_at  every decrease_ns, for ever. Cuts when a notification has come since the last cut; otherwise
 *                nothing happens, so it too is only caught up with.
 *   increase_at  increase_ns after the last cut or increase by time; stops at the line's rate.
 * When several are due at one moment they go in this order.
 */

/* So that what is due in an hour of silence is still counted quickly, and rates fit their arithmetic. */
#define DCQCN_SPAN_MIN_NS  (100 * (lh_time)1)
#define DCQCN_STEP_MIN_BPS UINT64_C(100000)
#define DCQCN_STAGES_MAX   1000u
#define DCQCN_BYTES_MIN    UINT64_C(1000)

/* ---- configuration ----------------------------------------------------------------------------------- */

static int check_span(const char *name, lh_time span_ns)
{
    if (span_ns >= DCQCN_SPAN_MIN_NS && span_ns <= DCQCN_SPAN_MAX_NS)
        return 0;
    return lh_fail(LH_ERANGE, "DCQCN: %s interval of %llu ns: out of range (100ns to 60min)", name,
                   (unsigned long long)span_ns);
}

static int check_rate(const char *name, uint64_t rate_bps)
{
    if (rate_bps >= DCQCN_STEP_MIN_BPS && rate_bps <= DCQCN_RATE_MAX_BPS)
        return 0;
    return lh_fail(LH_ERANGE, "DCQCN: %s of %llu bit/s: out of range (100kbit to 100Tbit)", name,
                   (unsigned long long)rate_bps);
}

int dcqcn_check(const struct dcqcn_config *config)
{
    int rc = check_span("alpha", config->alpha_ns);
    if (rc == 0)
        rc = check_span("decrease", config->decrease_ns);
    if (rc == 0)
        rc = check_span("increase", config->increase_ns);
    if (rc == 0)
        rc = check_rate("additive step", config->additive_bps);
    if (rc == 0)
        rc = check_rate("hyper step", config->hyper_bps);
    if (rc == 0)
        rc = check_rate("least rate", config->min_bps);
    if (rc != 0)
        return rc;
    if (!(config->gain > 0 && config->gain <= 1))
        return lh_fail(LH_ERANGE, "DCQCN: gain out of range (above 0, at most 1; example: 1/256)");
    if (config->increase_bytes != 0 && config->increase_bytes < DCQCN_BYTES_MIN)
        return lh_fail(LH_ERANGE,
                       "DCQCN: byte counter of %llu bytes: out of range (minimum %llu, or 0 for none)",
                       (unsigned long long)config->increase_bytes, (unsigned long long)DCQCN_BYTES_MIN);
    if (config->recovery_stages > DCQCN_STAGES_MAX)
        return lh_fail(LH_ERANGE, "DCQCN: %u recovery stages exceed the maximum of %u",
                       config->recovery_stages, DCQCN_STAGES_MAX);
    return 0;
}

/* ---- alpha ------------------------------------------------------------------------------------------- */

/* By squaring: the number of turns is that of the bits in `times`. */
static double power(double base, uint64_t times)
{
    double product = 1;
    for (; times > 0; times >>= 1, base *= base)
        if ((times & 1) != 0)
            product *= base;
    return product;
}

/* Whole periods from `at` to `now`, both ends counted. */
static uint64_t due_count(lh_time at, lh_time now, lh_time period_ns)
{
    return now < at ? 0 : (now - at) / period_ns + 1;
}

/* Only the first of the updates that are due knows of a notification. */
static void alpha_until(struct dcqcn *dcqcn, const struct dcqcn_config *config, lh_time now)
{
    uint64_t updates = due_count(dcqcn->alpha_at, now, config->alpha_ns);
    if (updates == 0)
        return;
    dcqcn->alpha *= power(1 - config->gain, updates);
    if (dcqcn->cnp_for_alpha)
        dcqcn->alpha += config->gain * power(1 - config->gain, updates - 1);
    dcqcn->cnp_for_alpha = false;
    dcqcn->alpha_at += updates * config->alpha_ns;
    assert(dcqcn->alpha >= 0 && dcqcn->alpha <= 1 + 1e-9);
}

/* ---- the rate ---------------------------------------------------------------------------------------- */

static void cut(struct dcqcn *dcqcn, const struct dcqcn_config *config, lh_time at)
{
    alpha_until(dcqcn, config, at);
    bool raised = dcqcn->time_stage > 0 || dcqcn->bytes_stage > 0; /* since the last cut */
    if (config->clamp || raised)
        dcqcn->target_bps = dcqcn->rate_bps;
    uint64_t rate_bps = (uint64_t)((double)dcqcn->rate_bps * (1 - dcqcn->alpha / 2));
    uint64_t min_bps = config->min_bps < dcqcn->line_bps ? config->min_bps : dcqcn->line_bps;
    dcqcn->rate_bps = rate_bps > min_bps ? rate_bps : min_bps;
    assert(dcqcn->target_bps >= dcqcn->rate_bps);
    dcqcn->time_stage = dcqcn->bytes_stage = 0;
    dcqcn->bytes_left = config->increase_bytes;
    dcqcn->increase_at = at + config->increase_ns;
    dcqcn->decrease_at = at + config->decrease_ns;
    dcqcn->cnp_for_decrease = false;
}

/* Half of the way to the target, which first grows when the stages of recovery are over: by the large step
 * when both counters are past them, by the small one when one of them is. */
static void raise(struct dcqcn *dcqcn, const struct dcqcn_config *config)
{
    uint32_t time_stage = dcqcn->time_stage;
    uint32_t bytes_stage = config->increase_bytes != 0 ? dcqcn->bytes_stage : time_stage;
    uint32_t maximum = time_stage > bytes_stage ? time_stage : bytes_stage;
    uint32_t minimum = time_stage > bytes_stage ? bytes_stage : time_stage;
    if (minimum > config->recovery_stages)
        dcqcn->target_bps += config->hyper_bps;
    else if (maximum >= config->recovery_stages)
        dcqcn->target_bps += config->additive_bps;
    if (dcqcn->target_bps > dcqcn->line_bps)
        dcqcn->target_bps = dcqcn->line_bps;
    dcqcn->rate_bps += (dcqcn->target_bps - dcqcn->rate_bps + 1) / 2;
    assert(dcqcn->rate_bps <= dcqcn->target_bps);
    if (dcqcn->rate_bps == dcqcn->line_bps)
        dcqcn->increase_at = LH_TIME_NEVER;
}

static void count_stage(uint32_t *stage)
{
    if (*stage < UINT32_MAX)
        (*stage)++;
}

static void raise_by_time(struct dcqcn *dcqcn, const struct dcqcn_config *config)
{
    dcqcn->increase_at += config->increase_ns;
    raise(dcqcn, config);
    count_stage(&dcqcn->time_stage);
}

/* ---- events ------------------------------------------------------------------------------------------ */

void dcqcn_init(struct dcqcn *dcqcn, uint64_t line_bps)
{
    assert(line_bps > 0 && line_bps <= DCQCN_RATE_MAX_BPS);
    *dcqcn = (struct dcqcn){.line_bps = line_bps,
                            .rate_bps = line_bps,
                            .target_bps = line_bps,
                            .alpha = 1,
                            .alpha_at = LH_TIME_NEVER,
                            .decrease_at = LH_TIME_NEVER,
                            .increase_at = LH_TIME_NEVER};
}

lh_time dcqcn_next_expiry(const struct dcqcn *dcqcn)
{
    lh_time cut_at = dcqcn->cnp_for_decrease ? dcqcn->decrease_at : LH_TIME_NEVER;
    return cut_at <= dcqcn->increase_at ? cut_at : dcqcn->increase_at;
}

/* A cut leaves none to come, and increases end at the line's rate, which each brings nearer: both bound the
 * turns. */
void dcqcn_on_time(struct dcqcn *dcqcn, const struct dcqcn_config *config, lh_time now)
{
    for (lh_time at = dcqcn_next_expiry(dcqcn); at <= now; at = dcqcn_next_expiry(dcqcn)) {
        if (at == LH_TIME_NEVER)
            return;
        if (dcqcn->cnp_for_decrease && dcqcn->decrease_at == at)
            cut(dcqcn, config, at);
        else
            raise_by_time(dcqcn, config);
    }
}

void dcqcn_on_cnp(struct dcqcn *dcqcn, const struct dcqcn_config *config, lh_time now)
{
    if (dcqcn->alpha_at == LH_TIME_NEVER) { /* the first one: alpha begins at 1 */
        dcqcn->alpha_at = now + config->alpha_ns;
        dcqcn->decrease_at = now + config->decrease_ns;
        dcqcn->cnp_for_decrease = true;
        return;
    }
    dcqcn_on_time(dcqcn, config, now);
    alpha_until(dcqcn, config, now);
    dcqcn->decrease_at += due_count(dcqcn->decrease_at, now, config->decrease_ns) * config->decrease_ns;
    dcqcn->cnp_for_alpha = true;
    dcqcn->cnp_for_decrease = true;
}

/* Each turn takes a counter's worth of the bytes. */
void dcqcn_on_bytes(struct dcqcn *dcqcn, const struct dcqcn_config *config, lh_time now, uint64_t bytes)
{
    dcqcn_on_time(dcqcn, config, now);
    if (config->increase_bytes == 0)
        return;
    for (; dcqcn->increase_at != LH_TIME_NEVER && bytes >= dcqcn->bytes_left;
         count_stage(&dcqcn->bytes_stage)) {
        bytes -= dcqcn->bytes_left;
        dcqcn->bytes_left = config->increase_bytes;
        raise(dcqcn, config);
    }
    if (dcqcn->increase_at != LH_TIME_NEVER)
        dcqcn->bytes_left -= bytes;
}

/* ---- dcqcn control --------------------------------------------------------------------------------- */

/* Timers: those of dcqcn.h, which run in round trips. */

/* Of timers, which run in round trips: at the least what the paper's notification point takes. */
#define TIMER_MIN_NS    (50 * LH_NS_PER_US)
#define RECOVERY_STAGES 3u
#define STEP_PART       0.25
#define HYPER_STEPS     5.0
/* Alpha's interval is a round trip and not a fraction of it: as DCTCP's. */
#define ALPHA_GAIN (1.0 / 16)
/* A rate that brings no more is not raised: above this many times what was delivered. */
#define UNPROVEN_MAX   2.0
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

static lh_time within_span(lh_time ns, lh_time min_ns)
{
    lh_time span_ns = ns > min_ns ? ns : min_ns;
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
        .alpha_ns = within_span(rtt_ns, TIMER_MIN_NS),
        .decrease_ns = within_span(rtt_ns, TIMER_MIN_NS),
        .increase_ns = control->increase_ns != 0 ? control->increase_ns : within_span(rtt_ns, TIMER_MIN_NS),
        .additive_bps = within_steps(step_bps),
        .hyper_bps = within_steps(HYPER_STEPS * step_bps),
        .min_bps = DCQCN_STEP_MIN_BPS,
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
    return control->delivered_bps > 0 ? UNPROVEN_MAX * control->delivered_bps : SHARE_RATE_MAX_BPS;
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
    double max_bps = proven_bps(control);
    if (control->limited) /* little may have been delivered because little was sent */
        max_bps = fmax(max_bps, (double)before_bps);
    if ((double)rate->rate_bps > max_bps)
        set_rate(control, max_bps, now);
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
    return lossy || control->rounds.queue_ns > within_span(rtt_ns, TIMER_MIN_NS);
}

/* Any one report of half a round trip ends the doubling. */
static bool has_doubled_enough(const struct dcqcn_control *control,
                               const struct lh_congestion_feedback *feedback)
{
    lh_time rtt_ns = control->rounds.minimum_ns;
    return control->doubling &&
           round_trips_queue_ns(&control->rounds, feedback) > within_span(rtt_ns / 2, TIMER_MIN_NS);
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
