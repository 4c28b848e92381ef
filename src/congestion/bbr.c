/* SPDX-License-Identifier: BSD-3-Clause */
#include "congestion/bbr.h"

#include <assert.h>

#include "base/earlier.h"
#include "base/error.h"

#define TRAIN_BYTES   65536
#define TRAIN_PACKETS 10
#define TRAIN_BPS     UINT64_C(40000000000)

enum bbr_state { BBR_TRAIN, BBR_STARTUP, BBR_DRAIN, BBR_DOWN, BBR_CRUISE, BBR_UP };

struct bbr {
    enum bbr_state state;
    uint32_t mtu;
    uint64_t rate_max_bps, window_max_bytes, train_bytes;
    /* the model */
    double bw, bw_now, bw_before; /* bits a second: max over this cycle and the last one */
    double rtt_min;               /* ns; 0 unknown */
    double rtt;                   /* of the last feedback */
    double loss;                  /* at random, smoothed */
    double inflight_hi;           /* bytes; 0: no bound */
    double hi_bw;
    uint64_t in_flight;
    /* the round */
    uint64_t round_end, rounds;
    bool round_start;
    uint64_t round_arrived, round_lost, round_marked;
    double round_rtt_min, round_bw;
    bool round_full; /* a sample that the application did not limit */
    /* the cycle */
    uint64_t cycle_round; /* when the state began */
    uint64_t cruise_rounds;
    lh_time state_ns;
    double up_bw, up_gain;
    bool up_seen;
    uint64_t rtt_min_round;
    uint64_t random;
};

static int bbr_parse(const char *text, uint8_t params[LH_CONGESTION_PARAMS])
{
    (void)params;
    if (*text == '\0')
        return 0;
    return lh_fail(LH_EINVAL, "bbr has no parameter \"%s\"", text);
}

static double bdp_of(const struct bbr *b)
{
    return b->bw * b->rtt_min / 8e9;
}

static uint64_t draw(struct bbr *b, uint64_t bound)
{
    b->random = b->random * 6364136223846793005u + 1442695040888963407u;
    return (b->random >> 33) % bound;
}

static void enter(struct bbr *b, enum bbr_state state, lh_time now)
{
    b->state = state;
    b->cycle_round = b->rounds;
    b->state_ns = now;
    b->up_gain = 1.25;
    b->up_seen = false;
    b->up_bw = b->bw;
    if (state == BBR_CRUISE)
        b->cruise_rounds = 4 + draw(b, 4);
    if (state == BBR_UP && b->round_full) { /* a new cycle */
        b->bw_before = b->bw_now > 0 ? b->bw_now : b->bw_before; /* without samples nothing was learned */
        b->bw_now = 0;
    }
}

static void bbr_start(void *state, const struct lh_congestion_path *path,
                      const uint8_t params[LH_CONGESTION_PARAMS], lh_time now)
{
    (void)params;
    struct bbr *b = state;
    *b = (struct bbr){.mtu = path->mtu_bytes,
                      .rate_max_bps = path->rate_max_bps,
                      .window_max_bytes = path->window_max_bytes,
                      .rtt_min = (double)path->rtt_ns,
                      .random = now ^ path->rtt_ns ^ 0x9e3779b97f4a7c15u};
    b->train_bytes = (uint64_t)TRAIN_PACKETS * path->mtu_bytes;
    if (b->train_bytes < TRAIN_BYTES)
        b->train_bytes = TRAIN_BYTES;
    enter(b, BBR_TRAIN, now);
}

static void on_rtt(struct bbr *b, const struct lh_congestion_feedback *f)
{
    if (f->rtt_ns == 0)
        return;
    b->rtt = (double)f->rtt_ns;
    if (b->rtt_min == 0 || b->rtt <= b->rtt_min * 1.01) {
        b->rtt_min_round = b->rounds;
        if (b->rtt_min == 0 || b->rtt < b->rtt_min)
            b->rtt_min = b->rtt;
    }
    if (b->round_rtt_min == 0 || b->rtt < b->round_rtt_min)
        b->round_rtt_min = b->rtt;
}

static void on_rate(struct bbr *b, const struct lh_congestion_feedback *f)
{
    double rate = (double)f->rate_bps;
    bool limited = f->rate_is_limited;
    if (rate == 0 && f->rtt_ns != 0) { /* all that was in flight came in one report: at least this */
        rate = (double)f->arrived_bytes * 8e9 / (double)f->rtt_ns;
        limited = true;
    }
    if (rate > b->round_bw)
        b->round_bw = rate;
    if (!limited && rate > 0)
        b->round_full = true;
    if (rate > b->bw_now && (!limited || rate > b->bw))
        b->bw_now = rate;
    b->bw = b->bw_now > b->bw_before ? b->bw_now : b->bw_before;
}

static double queue_of(const struct bbr *b) /* in round trips */
{
    return b->rtt_min > 0 && b->round_rtt_min > 0 ? (b->round_rtt_min - b->rtt_min) / b->rtt_min : 0;
}

/* At the end of a round: was it congested? */
static bool congested(struct bbr *b)
{
    double all = (double)(b->round_arrived + b->round_lost);
    if (all == 0)
        return false;
    double loss = (double)b->round_lost / all;
    bool marked = (double)b->round_marked > 0.2 * (double)b->round_arrived;
    bool queue = b->rtt_min > 0 && (b->rtt - b->rtt_min) / b->rtt_min > 1.0 / 16;
    bool lost = queue ? loss > b->loss + 0.015 : loss > 0.1;
    if (!queue && loss < 0.05 && b->round_lost + b->round_arrived > 8 * b->mtu)
        b->loss += (loss - b->loss) / 8;
    return marked || lost;
}

static void on_congestion(struct bbr *b, const struct lh_congestion_feedback *f)
{
    double bdp = bdp_of(b);
    double in_flight = (double)f->in_flight_at_send_bytes;
    b->inflight_hi = in_flight > 0.9 * bdp ? in_flight * 0.95 : 0.9 * bdp;
    if (b->state == BBR_CRUISE || b->state == BBR_DOWN) { /* the path got slower, or others came */
        double to = b->round_bw > 0.7 * b->bw ? b->round_bw : 0.7 * b->bw;
        if (b->round_bw > 0 && to < b->bw)
            b->bw = b->bw_now = b->bw_before = to;
    }
    if (b->state == BBR_UP || b->state == BBR_STARTUP || b->state == BBR_CRUISE)
        enter(b, b->state == BBR_STARTUP ? BBR_DRAIN : BBR_DOWN, f->now);
}

static void on_round(struct bbr *b, const struct lh_congestion_feedback *f)
{
    bool bad = congested(b);
    if (bad)
        on_congestion(b, f);
    else if (queue_of(b) > 1.5 && b->round_full && b->round_bw < b->bw)
        b->bw = b->bw_now = b->bw_before = b->round_bw;
    b->round_arrived = b->round_lost = b->round_marked = 0;
    b->round_rtt_min = b->round_bw = 0;
}

static void on_state(struct bbr *b, const struct lh_congestion_feedback *f)
{
    double bdp = bdp_of(b);
    bool new = f->sent_ns != 0 && f->sent_ns >= b->state_ns; /* of what was sent in this state */
    bool path_limits = f->rate_bps != 0 && (double)f->rate_bps < 0.8 * (double)f->sends_bps;
    switch (b->state) {
    case BBR_TRAIN:
        if (f->rate_bps != 0 && 2 * (f->arrived_total_bytes + f->lost_total_bytes) >= b->train_bytes)
            enter(b, path_limits ? BBR_CRUISE : BBR_STARTUP, f->now);
        break;
    case BBR_STARTUP:
        if (path_limits)
            enter(b, BBR_DRAIN, f->now);
        break;
    case BBR_DRAIN:
    case BBR_DOWN:
        if ((double)f->in_flight_bytes <= bdp + 2 * b->mtu)
            enter(b, BBR_CRUISE, f->now);
        break;
    case BBR_CRUISE:
        if (b->rounds >= b->cycle_round + b->cruise_rounds && b->round_full)
            enter(b, BBR_UP, f->now);
        break;
    case BBR_UP:
        if (new && !b->up_seen) {
            b->up_seen = true;
            b->cycle_round = b->rounds;
        }
        if (b->up_seen && b->rounds > b->cycle_round) {
            if (b->bw_now > 1.1 * b->up_bw && !path_limits) {
                b->up_bw = b->bw_now;
                b->up_gain = 2;
                b->cycle_round = b->rounds;
                if (b->inflight_hi > 0)
                    b->inflight_hi *= 2;
            } else {
                if (b->inflight_hi > 0 && b->inflight_hi < 2 * bdp)
                    b->inflight_hi *= 1.05;
                enter(b, BBR_DOWN, f->now);
            }
        }
        break;
    }
}

static void bbr_on_feedback(void *state, const struct lh_congestion_feedback *f)
{
    struct bbr *b = state;
    b->in_flight = f->in_flight_bytes;
    b->round_arrived += f->arrived_bytes;
    b->round_lost += f->lost_bytes;
    b->round_marked += f->marked_bytes;
    on_rtt(b, f);
    on_rate(b, f);
    if (f->rtt_ns != 0 && f->arrived_at_send_bytes >= b->round_end) {
        b->round_end = f->arrived_total_bytes;
        b->rounds++;
        on_round(b, f);
    }
    on_state(b, f);
    if (f->arrived_at_send_bytes == 0 && b->rounds > 0 && f->in_flight_bytes == 0)
        b->round_full = false;
}

static void bbr_on_timer(void *state, lh_time now)
{
    (void)state, (void)now;
}

static double gain_of(const struct bbr *b, lh_time now)
{
    switch (b->state) {
    case BBR_STARTUP:
        return 2.77;
    case BBR_DRAIN:
        return 0.5;
    case BBR_DOWN:
        return 0.75;
    case BBR_UP:
        return b->up_gain > 1.5 || (double)(now - b->state_ns) < b->rtt_min / 2 ? b->up_gain : 1;
    default:
        return 1;
    }
}

static void bbr_decide(const void *state, lh_time now, struct lh_congestion_decision *d)
{
    const struct bbr *b = state;
    *d = (struct lh_congestion_decision){.total_bytes = UINT64_MAX, .next_ns = LH_TIME_NEVER};
    double rate, window;
    if (b->state == BBR_TRAIN) {
        rate = (double)TRAIN_BPS;
        window = (double)b->train_bytes;
        d->burst_bytes = 4 * b->mtu;
    } else {
        rate = gain_of(b, now) * b->bw * (1 + b->loss);
        double bdp = bdp_of(b);
        window = (b->state == BBR_STARTUP || b->up_gain > 1.5 ? 3 : 2) * bdp;
        if (b->inflight_hi > 0 && b->inflight_hi < window)
            window = b->inflight_hi;
        window += rate * (b->rtt_min / 4 < 500e3 ? b->rtt_min / 4 : 500e3) / 8e9; /* held reports, bursts */
        window = window > 4 * b->mtu ? window : 4 * b->mtu;
    }
    d->rate_bps = rate < 8e3 ? 8000 : (uint64_t)rate;
    if (d->rate_bps > b->rate_max_bps)
        d->rate_bps = b->rate_max_bps;
    d->window_bytes = (uint64_t)window < b->window_max_bytes ? (uint64_t)window : b->window_max_bytes;
}

static void bbr_view(const void *state, struct lh_congestion_view *view)
{
    static const char *const names[] = {"train", "startup", "drain", "down", "cruise", "up"};
    const struct bbr *b = state;
    *view = (struct lh_congestion_view){
        .bandwidth_bps = (uint64_t)b->bw, .rtt_minimum_ns = (lh_time)b->rtt_min, .state = names[b->state]};
}

const struct lh_congestion bbr_congestion = {
    .name = "bbr",
    .help = "no parameters: a model of bandwidth and round trip (after draft-ietf-ccwg-bbr)",
    .parse = bbr_parse,
    .state_bytes = sizeof(struct bbr),
    .start = bbr_start,
    .on_feedback = bbr_on_feedback,
    .on_timer = bbr_on_timer,
    .decide = bbr_decide,
    .view = bbr_view,
};
