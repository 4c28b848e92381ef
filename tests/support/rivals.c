/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/rivals.h"

#include <math.h>

static int parse(const char *text, uint8_t params[LH_CONGESTION_PARAMS])
{
    (void)params;
    return *text == '\0' ? 0 : -1;
}

static void on_timer(void *state, lh_time now)
{
    (void)state, (void)now;
}

/* ---- CUBIC ------------------------------------------------------------------------------------------- */

struct cubic {
    double mtu, window, threshold; /* bytes */
    double largest;                /* packets: before the last cut */
    double epoch_s;                /* 0: none */
    uint64_t recovery_until;       /* total of what arrived and was lost */
    double rtt_s;
};

static void cubic_start(void *state, const struct lh_congestion_path *path,
                        const uint8_t params[LH_CONGESTION_PARAMS], lh_time now)
{
    (void)params, (void)now;
    *(struct cubic *)state = (struct cubic){
        .mtu = path->mtu_bytes, .window = 10.0 * path->mtu_bytes, .threshold = 1e18, .rtt_s = 0.1};
}

static void cubic_grow(struct cubic *c, double arrived, double now_s)
{
    if (c->window < c->threshold) {
        c->window += arrived;
        return;
    }
    if (c->epoch_s == 0)
        c->epoch_s = now_s;
    double t = now_s - c->epoch_s + c->rtt_s;
    double k = cbrt(c->largest * 0.3 / 0.4);
    double target = (0.4 * pow(t - k, 3) + c->largest) * c->mtu;
    double reno = (c->largest * 0.7 + 0.53 * t / c->rtt_s) * c->mtu;
    target = target > reno ? target : reno;
    target = target < 1.5 * c->window ? target : 1.5 * c->window;
    if (target > c->window)
        c->window += (target - c->window) * arrived / c->window;
}

static void cubic_on_feedback(void *state, const struct lh_congestion_feedback *f)
{
    struct cubic *c = state;
    uint64_t total = f->arrived_total_bytes + f->lost_total_bytes;
    if (f->rtt_ns != 0)
        c->rtt_s = (double)f->rtt_ns / 1e9;
    if (f->lost_bytes > 0 && total > c->recovery_until) {
        c->largest = c->window / c->mtu;
        c->window *= 0.7;
        c->window = c->window > 2 * c->mtu ? c->window : 2 * c->mtu;
        c->threshold = c->window;
        c->epoch_s = 0;
        c->recovery_until = total + f->in_flight_bytes;
    } else if (total > c->recovery_until) {
        cubic_grow(c, (double)f->arrived_bytes, (double)f->now / 1e9);
    }
}

static void cubic_decide(const void *state, lh_time now, struct lh_congestion_decision *decision)
{
    (void)now;
    const struct cubic *c = state;
    *decision = (struct lh_congestion_decision){.rate_bps = (uint64_t)(2 * c->window * 8 / c->rtt_s),
                                                .window_bytes = (uint64_t)c->window,
                                                .total_bytes = UINT64_MAX,
                                                .next_ns = LH_TIME_NEVER};
}

static void cubic_view(const void *state, struct lh_congestion_view *view)
{
    (void)state;
    *view = (struct lh_congestion_view){.state = "cubic"};
}

const struct lh_congestion rival_cubic = {
    .name = "cubic",
    .help = "",
    .parse = parse,
    .state_bytes = sizeof(struct cubic),
    .start = cubic_start,
    .on_feedback = cubic_on_feedback,
    .on_timer = on_timer,
    .decide = cubic_decide,
    .view = cubic_view,
};

/* ---- BBR, version 1 ---------------------------------------------------------------------------------- */

#define ROUNDS 10

enum { STARTUP, DRAIN, PROBE_BW, PROBE_RTT };

struct bbr1 {
    int mode, phase, flat_rounds;
    double mtu, rates[ROUNDS], full_bps;
    uint64_t round, round_end;
    lh_time rtt_min_ns, rtt_min_at, phase_at, probe_rtt_until;
};

static double bbr1_rate(const struct bbr1 *b)
{
    double maximum = 0;
    for (int i = 0; i < ROUNDS; i++)
        maximum = fmax(maximum, b->rates[i]);
    return maximum;
}

static void bbr1_start(void *state, const struct lh_congestion_path *path,
                       const uint8_t params[LH_CONGESTION_PARAMS], lh_time now)
{
    (void)params;
    *(struct bbr1 *)state =
        (struct bbr1){.mtu = path->mtu_bytes, .rtt_min_ns = path->rtt_ns, .rtt_min_at = now};
}

static void bbr1_on_round(struct bbr1 *b, const struct lh_congestion_feedback *f)
{
    b->round_end = f->arrived_total_bytes;
    b->round++;
    b->rates[b->round % ROUNDS] = 0;
    if (b->mode != STARTUP)
        return;
    b->flat_rounds++;
    if (bbr1_rate(b) > 1.25 * b->full_bps) {
        b->full_bps = bbr1_rate(b);
        b->flat_rounds = 0;
    }
    if (b->flat_rounds >= 3)
        b->mode = DRAIN;
}

static void bbr1_on_rtt(struct bbr1 *b, const struct lh_congestion_feedback *f)
{
    bool expired = f->now > b->rtt_min_at + 10 * LH_NS_PER_S;
    if (b->rtt_min_ns == 0 || f->rtt_ns <= b->rtt_min_ns || expired) {
        b->rtt_min_ns = f->rtt_ns;
        b->rtt_min_at = f->now;
    }
    if (expired && b->mode == PROBE_BW) {
        b->mode = PROBE_RTT;
        b->probe_rtt_until = f->now + 200 * LH_NS_PER_MS + f->rtt_ns;
    }
}

static void bbr1_on_feedback(void *state, const struct lh_congestion_feedback *f)
{
    struct bbr1 *b = state;
    if (f->rtt_ns == 0)
        return;
    bbr1_on_rtt(b, f);
    if (f->arrived_at_send_bytes >= b->round_end)
        bbr1_on_round(b, f);
    double *rate = &b->rates[b->round % ROUNDS];
    if (!f->rate_is_limited || (double)f->rate_bps > bbr1_rate(b))
        *rate = fmax(*rate, (double)f->rate_bps);
    double bdp = bbr1_rate(b) * (double)b->rtt_min_ns / 8e9;
    if (b->mode == DRAIN && (double)f->in_flight_bytes <= bdp) {
        b->mode = PROBE_BW;
        b->phase = 2;
        b->phase_at = f->now;
    }
    bool drained = b->phase == 1 && (double)f->in_flight_bytes <= bdp;
    if (b->mode == PROBE_BW && (f->now > b->phase_at + b->rtt_min_ns || drained)) {
        b->phase = (b->phase + 1) % 8;
        b->phase_at = f->now;
    }
    if (b->mode == PROBE_RTT && f->now > b->probe_rtt_until) {
        b->mode = PROBE_BW;
        b->rtt_min_at = f->now;
    }
}

static void bbr1_decide(const void *state, lh_time now, struct lh_congestion_decision *decision)
{
    (void)now;
    const struct bbr1 *b = state;
    static const double gains[8] = {1.25, 0.75, 1, 1, 1, 1, 1, 1};
    double rtt_ns = b->rtt_min_ns != 0 ? (double)b->rtt_min_ns : 1e6;
    double rate = bbr1_rate(b) > 0 ? bbr1_rate(b) : 10 * b->mtu * 8e9 / rtt_ns;
    double pace = b->mode == STARTUP ? 2.89 : b->mode == DRAIN ? 1 / 2.89 : 1;
    double window = (b->mode == PROBE_BW ? 2 : 2.89) * rate * rtt_ns / 8e9 + 3 * b->mtu;
    if (b->mode == PROBE_BW)
        pace = gains[b->phase];
    if (b->mode == PROBE_RTT)
        window = 4 * b->mtu;
    *decision = (struct lh_congestion_decision){.rate_bps = (uint64_t)(pace * rate) + 1000,
                                                .window_bytes = (uint64_t)fmax(window, 4 * b->mtu),
                                                .total_bytes = UINT64_MAX,
                                                .next_ns = LH_TIME_NEVER};
}

static void bbr1_view(const void *state, struct lh_congestion_view *view)
{
    static const char *const names[] = {"startup", "drain", "probe_bw", "probe_rtt"};
    const struct bbr1 *b = state;
    *view = (struct lh_congestion_view){
        .bandwidth_bps = (uint64_t)bbr1_rate(b), .rtt_minimum_ns = b->rtt_min_ns, .state = names[b->mode]};
}

const struct lh_congestion rival_bbr1 = {
    .name = "bbr1",
    .help = "",
    .parse = parse,
    .state_bytes = sizeof(struct bbr1),
    .start = bbr1_start,
    .on_feedback = bbr1_on_feedback,
    .on_timer = on_timer,
    .decide = bbr1_decide,
    .view = bbr1_view,
};
