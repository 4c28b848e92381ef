/* SPDX-License-Identifier: BSD-3-Clause */
#include "congestion/bbr.h"

#include <assert.h>
#include <math.h>

#include "base/earlier.h"
#include "base/error.h"

#define TRAIN_BYTES       65536
#define TRAIN_PACKETS     10
#define SLOWER            0.7
#define RTT_ROUNDS        200
#define SHARED_ROUNDS     2
#define QGAIN             0.5
#define REMEMBERED_MAX_NS (24 * 3600 * LH_NS_PER_S)
#define TRAIN_BPS         UINT64_C(40000000000)

enum bbr_state { BBR_TRAIN, BBR_STARTUP, BBR_DRAIN, BBR_DOWN, BBR_CRUISE, BBR_UP, BBR_PROBE_RTT };

struct bbr {
    enum bbr_state state;
    uint32_t mtu;
    uint64_t rate_max_bps, window_max_bytes, train_bytes;
    /* the model */
    double bw, bw_now, bw_before; /* bits a second: max over this cycle and the last one */
    double rtt_min;               /* ns; 0 unknown */
    double rtt;                   /* of the last feedback */
    double loss;                  /* at random, smoothed */
    uint64_t settled, cut_round;
    double remembered_bps; /* 0: nothing is */
    double spacing_bytes, spacing_ns, spacing_bps;
    double cycle_rtt_min, last_q;
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
    bool up_seen, up_fast;
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

static bool shared(const struct bbr *b)
{
    return b->rtt_min > 0 && b->cycle_rtt_min > 1.08 * b->rtt_min;
}

static void enter(struct bbr *b, enum bbr_state state, lh_time now)
{
    b->state = state;
    b->cycle_round = b->rounds;
    b->state_ns = now;
    b->up_gain = 1.25;
    b->up_fast = false;
    if (state == BBR_UP && shared(b)) {
        double more = 6 / sqrt(bdp_of(b) / b->mtu + 1);
        b->up_gain = 1 + (more < 0.05 ? 0.05 : more > 1 ? 1 : more);
    }
    b->up_seen = false;
    b->up_bw = b->bw;
    if (state == BBR_CRUISE)
        b->cruise_rounds = 4 + draw(b, 4);
    if (state == BBR_UP) { /* a new cycle */
        b->cycle_rtt_min = 0;
        b->bw_before = b->bw_now > 0 ? b->bw_now : b->bw_before; /* without samples nothing was learned */
        b->bw_now = 0;
    }
}

/* The path has about the round trip that is remembered, and its product is worth it. */
static bool remembered_is_usable(const struct lh_congestion_path *path)
{
    double rtt = (double)path->rtt_ns, then = (double)path->remembered_rtt_ns;
    double train = (double)path->remembered_rate_bps * rtt / 16e9;
    return path->remembered_rate_bps != 0 && rtt > 0 && rtt < 1.25 * then && rtt > 0.8 * then &&
           path->remembered_age_ns < REMEMBERED_MAX_NS && train > TRAIN_BYTES;
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
    if (remembered_is_usable(path)) {
        b->remembered_bps = (double)path->remembered_rate_bps;
        b->train_bytes = (uint64_t)(b->remembered_bps * b->rtt_min / 16e9);
    }
    b->train_bytes = (b->train_bytes + path->mtu_bytes - 1) / path->mtu_bytes * path->mtu_bytes;
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

static void set_bw(struct bbr *b, double bw)
{
    b->bw = b->bw_now = b->bw_before = bw;
}

static void on_congestion(struct bbr *b, const struct lh_congestion_feedback *f)
{
    bool cruises = b->state == BBR_CRUISE || b->state == BBR_DOWN;
    if (cruises && b->round_full && b->round_bw > 0 && (!shared(b) || b->rounds >= b->cut_round + 2)) {
        double to = (shared(b) ? 0.85 : 1) * b->round_bw;
        double least = b->round_bw < 0.6 * b->bw ? 0 : 0.7 * b->bw;
        to = to > least ? to : least;
        if (to < b->bw)
            set_bw(b, to);
        b->cut_round = b->rounds;
    }
    if ((b->state == BBR_UP && (b->up_seen || !shared(b))) || (b->state == BBR_CRUISE && !shared(b)))
        enter(b, BBR_DOWN, f->now);
}

static void on_round(struct bbr *b, const struct lh_congestion_feedback *f)
{
    bool bad = congested(b);
    if (bad)
        on_congestion(b, f);
    else if (queue_of(b) > 1.5 && b->round_full && b->round_bw < b->bw && b->round_bw > 0)
        set_bw(b, b->round_bw);
    if (b->cycle_rtt_min == 0 || (b->round_rtt_min != 0 && b->round_rtt_min < b->cycle_rtt_min))
        b->cycle_rtt_min = b->round_rtt_min;
    b->round_arrived = b->round_lost = b->round_marked = 0;
    b->last_q = b->round_rtt_min > b->rtt_min ? b->round_rtt_min - b->rtt_min : 0;
    b->round_rtt_min = b->round_bw = 0;
    b->round_full = false;
}

static void end_up(struct bbr *b, bool path_limits, lh_time now)
{
    if (b->bw_now > 1.06 * b->up_bw && !path_limits) {
        b->up_bw = b->bw_now;
        b->up_gain = 2;
        b->up_fast = true;
        b->cycle_round = b->rounds;
    } else {
        enter(b, BBR_DOWN, now);
    }
}

static void on_train(struct bbr *b, const struct lh_congestion_feedback *f, bool path_limits)
{
    uint64_t settled = f->arrived_total_bytes + f->lost_total_bytes;
    bool most = 2 * f->arrived_total_bytes >= b->train_bytes && f->rate_bps != 0;
    if (b->remembered_bps != 0 && f->rate_bps != 0 && f->arrived_total_bytes >= TRAIN_BYTES) {
        if (!path_limits && b->rtt < 1.05 * b->rtt_min)
            set_bw(b, b->remembered_bps);
        enter(b, BBR_CRUISE, f->now);
        return;
    }
    if (!most && settled + b->mtu <= b->train_bytes)
        return;
    if (b->bw == 0) {
        lh_time over =
            f->lost_total_bytes > 0 || b->rtt_min == 0 ? f->now - b->state_ns : (lh_time)b->rtt_min;
        set_bw(b, (double)(f->arrived_total_bytes + b->mtu) * 8e9 / (double)(over + 1));
    }
    enter(b, path_limits ? BBR_CRUISE : BBR_STARTUP, f->now);
}

/* How fast packets come in now, over an eighth of a round trip. */
static void on_spacing(struct bbr *b, const struct lh_congestion_feedback *f)
{
    if (f->train_bps == 0)
        return;
    b->spacing_bytes += (double)f->train_bytes;
    b->spacing_ns += (double)f->train_bytes * 8e9 / (double)f->train_bps;
    if (b->spacing_ns < b->rtt_min / 8 || b->spacing_bytes < 16 * b->mtu)
        return;
    b->spacing_bps = b->spacing_bytes * 8e9 / b->spacing_ns;
    b->spacing_bytes = b->spacing_ns = 0;
}

static void on_state(struct bbr *b, const struct lh_congestion_feedback *f)
{
    double bdp = bdp_of(b);
    bool new = f->sent_ns != 0 && f->sent_ns >= b->state_ns; /* of what was sent in this state */
    bool path_limits = f->rate_bps != 0 && (double)f->rate_bps < 0.8 * (double)f->sends_bps;
    switch (b->state) {
    case BBR_TRAIN:
        on_train(b, f, path_limits);
        break;
    case BBR_STARTUP:
        if (path_limits) {
            double most = 2.77 * b->bw;
            double now = b->spacing_bps < most ? b->spacing_bps : most;
            if (now > b->bw)
                set_bw(b, now);
            enter(b, BBR_DRAIN, f->now);
        }
        break;
    case BBR_DRAIN:
    case BBR_DOWN:
        if ((double)f->in_flight_bytes <= bdp + 2 * b->mtu || b->rounds > b->cycle_round + 1)
            enter(b, BBR_CRUISE, f->now);
        break;
    case BBR_CRUISE:
        if (new &&path_limits && (double)f->rate_bps < SLOWER * b->bw && !f->rate_is_limited &&
            b->rtt > 1.1 * b->rtt_min) {
            set_bw(b, (double)f->rate_bps);
            enter(b, BBR_DRAIN, f->now);
        } else if (b->rounds > b->rtt_min_round + RTT_ROUNDS)
            enter(b, BBR_PROBE_RTT, f->now);
        else if (b->rounds >= b->cycle_round +
                                  (shared(b) ? SHARED_ROUNDS + b->cruise_rounds % 2 : b->cruise_rounds) &&
                 !f->rate_is_limited)
            enter(b, BBR_UP, f->now);
        break;
    case BBR_PROBE_RTT:
        if (b->rounds > b->cycle_round + 2) {
            b->rtt_min = b->rtt;
            b->rtt_min_round = b->rounds;
            enter(b, BBR_CRUISE, f->now);
        }
        break;
    case BBR_UP:
        if (new && !b->up_seen) {
            b->up_seen = true;
            b->cycle_round = b->rounds;
        }
        if (b->up_seen && b->rounds > b->cycle_round)
            end_up(b, path_limits, f->now);
        break;
    }
}

static void bbr_on_feedback(void *state, const struct lh_congestion_feedback *f)
{
    struct bbr *b = state;
    b->in_flight = f->in_flight_bytes;
    b->settled = f->arrived_total_bytes + f->lost_total_bytes;
    on_spacing(b, f);
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
        return b->up_fast || (double)(now - b->state_ns) < b->rtt_min / 2 ? b->up_gain : 1;
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
        rate = b->remembered_bps > 0 ? b->remembered_bps / 2 : (double)TRAIN_BPS;
        window = (double)(b->train_bytes > b->settled ? b->train_bytes - b->settled : 0);
        window = window > 4 * b->mtu ? window : 4 * b->mtu;
        d->burst_bytes = b->remembered_bps > 0 ? 0 : 4 * b->mtu;
    } else {
        rate = gain_of(b, now) * b->bw * (1 + b->loss);
        double bdp = bdp_of(b);
        window = (b->state == BBR_STARTUP || b->up_fast ? 3 : 2) * bdp;
        double rtt = b->rtt > b->rtt_min ? b->rtt : b->rtt_min; /* two packets a round trip at the least */
        if (b->state == BBR_PROBE_RTT)
            window = bdp / 2;
        if (rtt > 0 && rate < 16e9 * b->mtu / rtt)
            rate = 16e9 * b->mtu / rtt;
        double q = b->last_q < 2 * b->rtt_min ? b->last_q : 2 * b->rtt_min;
        double open = b->bw * (b->rtt_min + q + QGAIN * b->rtt_min) / 8e9;
        if (open > window && b->state != BBR_PROBE_RTT)
            window = open;
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
    static const char *const names[] = {"train", "startup", "drain", "down", "cruise", "up", "probe-rtt"};
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
