/*
 * bbr.c - see bbr.h; docs/congestion.md lists what differs from the draft and what that buys.
 *
 * States, in their order:
 *   train      the first window: a short train, far faster than most paths. Its spacing at the receiver is
 *              the path's rate. Of a path that is remembered: half of its window at half of its rate.
 *   startup    the train did not fill the path: 2.77 times the rate each round trip, until the path limits
 *              it.
 *   drain      what startup put into the queue.
 *   cruise     at the path's rate.
 *   up         for half a round trip a little faster: is there more? Then on until there is not. Where that
 *              would fill a short queue it is shorter, and begins with an empty queue.
 *   down       what that put into the queue.
 *   share      others use the path, too. Everybody of this kind sees the same queue: when it gets long, all
 *              yield by the same factor, in the same round trip, and it gets empty; then all grow by an
 *              amount that depends little on the share. Each such cycle makes the shares more equal, and each
 *              shows the shortest round trip. When this flow has yielded and the queue does not get empty,
 *              the others are of another kind: it does as it does alone, until the queue gets much shorter.
 *   loss-test  half of what was delivered, when packets are lost without a queue: is as much lost at that
 *              rate, it is the path's own and costs the rate nothing; else a policer drops them.
 *   probe-rtt  half a window for two round trips, when the shortest round trip was not seen for 200 of them.
 * No state has a timer: all end by what arrives. Only a policer's rate is not probed for a time. A cycle is
 * from one `up` to the next. A path is shared when its queue was never empty in a cycle, though this flow
 * emptied its part.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/controllers.h"

#include <math.h>

#include "base/error.h"
#include "base/min_max.h"
#include "congestion/bbr_path.h"

#define RATE_MIN_BPS 8e3
#define RATE_MIN_RTT 10e6 /* a slow path need not be a long one */

#define STARTUP_GAIN   2.77 /* the draft's */
#define STARTUP_GROWTH 16   /* in flight at most, of what has arrived: a train may come all at once */
#define DRAIN_GAIN     0.5
#define DOWN_GAIN      0.75
#define UP_GAIN        1.25
#define UP_FAST_GAIN   2.0
#define UP_GROWTH      1.06 /* half a round trip at 1.25 shows as 1.125 over a whole one */
#define UP_SHARED      6.0  /* divided by the root of the window in packets: the smaller flow probes more */
#define UP_SHARED_MIN  0.05
#define UP_SHARED_MAX  1.0
#define CRUISE_ROUNDS  4 /* and up to as many more, at random: so that flows do not probe together */
#define SHARED_ROUNDS  2 /* likewise, up to one more */
#define RTT_MIN_ROUNDS 200

#define PATH_LIMITS    0.8        /* delivered, of what was sent */
#define SLOWER         0.7        /* delivered, of the estimate: the path became slower */
#define MUCH_SLOWER    0.6        /* likewise */
#define FELL           0.5        /* likewise, by the spacing; less than half: no newcomer takes more */
#define FELL_SPACINGS  2          /* in a row: hosts pause for less */
#define FELL_QUEUE     0.1        /* longer than that, and shorter a round trip ago */
#define FELL_ROUNDS    40         /* others that start meanwhile are no slower path */
#define SHARED_RTT     0.08       /* shortest round trip of a cycle, above the shortest ever */
#define SHARED_PACKETS 4          /* and their time more */
#define QUEUE_DELAY    (1.0 / 16) /* delay units; with less, loss is no sign of a queue */
#define MARKED         0.02
#define UNTIMED_SHARE  2 /* of the queue, forgotten with each report that times nothing: a clock was set */
#define HOST_RTT_NS    1e6  /* delays are measured in units of at least that: hosts do not always run */
#define SHARE_HOST_NS  4e6  /* and those of others: a queue that this flow made is taken for theirs */
#define UP_NS          5e5  /* reports do not show what is shorter */
#define PACE_TOLERANCE 1.25 /* of a delivery rate, above the pace */
#define SHARED_CUT     0.85 /* of what was delivered: so that the queue gets shorter */
#define CUT_MAX        0.7

#define NOT_DELIVERED 0.9 /* of the estimate, while loss is made up for: others take it */
#define QUEUE_ROUNDS  256 /* that long after packets have waited, the bottleneck has a queue */
#define POLICED_BW    0.9 /* of the policer's rate; with less it may be probed */
#define LONG_ROUND_NS 2e6
#define STALL_PACKETS 16   /* and more at once, all that was in flight: the rate is far too high, and */
#define STALL_CUT     4    /* what it is, is unknown */
#define FLOOD_LOST    0.75 /* of a round trip that the application limited, and so many packets: the same */
#define FIRST_WINDOW  10   /* packets (RFC 6928) */
#define STRICT_LOSS   0.01 /* with more, what arrives varies */
#define UP_QUEUED     2    /* a single one may be the hosts' */
#define PAUSED_ROUNDS 256  /* after one that the application limited */
#define TEST_ROUNDS   32   /* at most */

/* A short queue: this flow alone makes it drop packets. */
#define SHORT_QUEUE     0.4  /* delay units, see delay_unit() */
#define SHORT_LOST      4    /* packets more than at random, and so many deviations */
#define SHORT_PACKETS   16   /* at the least: fewer cannot be probed with less */
#define SHORT_LONGER    1.25 /* than where it dropped packets: it is another, */
#define SHORT_ROUNDS    2000 /* or after that time may be */
#define SHORT_UP        0.5  /* of it: what `up` may fill */
#define SHORT_TOLERANCE 1.02 /* of a delivery rate, above the pace */

/* Sharing. Queues in delay units. */
#define SHARE_QUEUE       0.25 /* more, and everybody yields, */
#define SHARE_QUEUE_NS    5e6  /* at most, */
#define SHARE_SEEN        0.5  /* or that much of it for a whole cycle: others yield sooner, */
#define SHARE_PACKETS     2    /* and so many of this flow's packets, but not twice as much in all */
#define SHARE_MARKED      0.5  /* or so many marks: a few are chance, and flows would yield one by one */
#define SHARE_CUT         0.8  /* of a full path and that queue: it gets empty */
#define SHARE_GROWTH      0.35 /* a round trip: of the root of the window in packets, */
#define SHARE_MIN         0.25 /* and at least, in packets; */
#define SHARE_USED        0.85 /* or so much of the rate was used: the host does not keep up with it; */
#define SHARE_RTT_NS      25e6 /* with this round trip; by the time, so that long paths get a share, */
#define SHARE_RTT_MAX     4.0  /* up to so many times longer or shorter */
#define SHARE_SHRINKS     0.05 /* shorter than a round trip ago: wait */
#define SHARE_SPARE       1.25 /* of the rate before the last cut, and no queue: others have left */
#define SHARE_EMPTY       0.1
#define SHARE_SPARE_EMPTY 0.02
#define LONG_AGAIN        40  /* rounds */
#define FUTILE_CUTS       4   /* and the queue was never empty */
#define FOREIGN_ROUNDS    400 /* then see again */
#define FOREIGN_LONGEST   0.5 /* after a queue of that length one of */
#define FOREIGN_SHORTEST  0.5 /* so much of it: the others yield, too */

enum bbr_state {
    BBR_TRAIN,
    BBR_STARTUP,
    BBR_DRAIN,
    BBR_CRUISE,
    BBR_UP,
    BBR_DOWN,
    BBR_PROBE_RTT,
    BBR_SHARE,
    BBR_LOSS_TEST
};

/* Rates in bit/s, times in nanoseconds. */
struct bbr {
    enum bbr_state state;
    uint32_t mtu;
    uint64_t rate_max_bps, window_max_bytes;
    double remembered_bps; /* 0: nothing is */
    struct bbr_train train;
    lh_time train_end_ns; /* 0: not yet */
    uint64_t random;
    /* The path. */
    double bw;                /* the larger of */
    double bw_now, bw_before; /* the highest delivery rates of this cycle and the one before */
    double rtt_min;           /* 0: unknown */
    uint64_t rtt_min_round;   /* when it was seen last */
    double rtt;               /* of the last feedback */
    struct bbr_untimed untimed;
    struct bbr_loss loss;
    bool queue_seen;      /* packets have waited, */
    uint64_t queue_round; /* and when last */
    bool tested_queue;    /* there was one before the test */
    double queue;         /* shortest queueing delay of the last round trip */
    /* Totals at the start: of the connection, or of another path. */
    bool counted;
    uint64_t arrived_before, lost_before;
    uint64_t settled_bytes; /* arrived or lost, since then */
    /* The spacing of what arrives. */
    double spacing_bytes, spacing_ns, spacing_bps;
    uint32_t slow_spacings; /* in a row */
    /* This round trip. */
    uint64_t rounds, round_end_bytes;
    uint64_t messages_until; /* the application limited one lately */
    lh_time round_ns;        /* when it began */
    uint64_t round_arrived, round_marked;
    double round_lost; /* of what was sent before the newest arrival: below 0 where late ones came */
    double missing;    /* the same since the start */
    double round_rtt_min, round_bw;
    double pace, pace_before; /* the highest pace of this round trip and of the one before */
    bool round_full;          /* has a sample that the application did not limit, */
    bool round_limited;       /* or one that it did */
    bool round_stalled;       /* all that was in flight was lost */
    /* This state, this cycle. */
    lh_time state_ns;
    uint64_t state_round, cruise_rounds, cut_round;
    double cycle_rtt_min;
    struct bbr_up up;
    double full_queue; /* the delay at which the queue dropped packets; 0: it has not */
    uint64_t full_round;
    /* Sharing. */
    bool foreign; /* others fill the queue whatever this flow does */
    uint64_t foreign_round;
    uint64_t long_round;      /* when this flow emptied a long queue as its own; 0: never */
    double queue_longest;     /* since then */
    uint32_t cuts;            /* since the queue was empty */
    double uncut_bw, last_bw; /* before the first, before the last of them */
    double last_queue;        /* a round trip ago */
    bool up_next;             /* `up` follows */
};

static int bbr_parse(const char *text, uint8_t params[LH_CONGESTION_PARAMS])
{
    (void)params;
    if (*text == '\0')
        return 0;
    return lh_fail(LH_EINVAL, "bbr has no parameter \"%s\"", text);
}

/* ---- the path ---------------------------------------------------------------------------------------- */

static double bdp_of(const struct bbr *b)
{
    return b->bw * b->rtt_min / 8e9;
}

static double delay_unit(const struct bbr *b)
{
    return fmax(b->rtt_min, HOST_RTT_NS);
}

static double share_unit(const struct bbr *b)
{
    return fmax(b->rtt_min, SHARE_HOST_NS);
}

static uint64_t draw(struct bbr *b, uint64_t bound)
{
    b->random = b->random * 6364136223846793005u + 1442695040888963407u;
    return (b->random >> 33) % bound;
}

static bool shared(const struct bbr *b)
{
    double own = b->bw > 0 ? SHARED_PACKETS * 8e9 * b->mtu / b->bw : 0; /* of few packets: itself */
    return b->rtt_min > 0 && b->cycle_rtt_min > b->rtt_min + SHARED_RTT * share_unit(b) + own;
}

/* This flow is alone, and the queue holds little of what is sent too fast. */
static bool queue_is_short(const struct bbr *b)
{
    return b->full_queue > 0 && b->full_queue < SHORT_QUEUE * delay_unit(b) && b->state != BBR_SHARE &&
           !b->foreign && !shared(b);
}

/* How long `up` is faster. Others that fill the queue probe for as long. */
static double up_span(const struct bbr *b, double gain)
{
    bool whole = b->foreign || b->loss.share > STRICT_LOSS; /* fewer packets say little of random loss */
    double span = fmax(whole ? b->rtt_min : b->rtt_min / 2, UP_NS);
    return queue_is_short(b) ? fmin(span, SHORT_UP * b->full_queue / (gain - 1)) : span;
}

/* Of random loss, and messages that are over soon: delivery rates are of their ends. */
static bool lossy_messages(const struct bbr *b)
{
    return b->rounds < b->messages_until && b->loss.share > STRICT_LOSS;
}

static void enter(struct bbr *b, enum bbr_state state, lh_time now)
{
    b->state = state;
    b->state_round = b->rounds;
    b->state_ns = now;
    double gain = UP_GAIN;
    if (state == BBR_UP && shared(b)) {
        double more = UP_SHARED / sqrt(bdp_of(b) / b->mtu + 1);
        gain = 1 + fmin(fmax(more, UP_SHARED_MIN), UP_SHARED_MAX);
    }
    bbr_up_start(&b->up, b->bw, gain, up_span(b, gain), now);
    b->slow_spacings = 0;
    b->up_next = false;
    if (state == BBR_CRUISE)
        b->cruise_rounds = CRUISE_ROUNDS + draw(b, 4);
    if (state == BBR_UP) { /* a new cycle */
        b->cycle_rtt_min = 0;
        b->bw_before = lossy_messages(b) ? b->bw : b->bw_now > 0 ? b->bw_now : b->bw_before;
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
    if (bbr_train_remembers(path))
        b->remembered_bps = (double)path->remembered_rate_bps;
    bbr_loss_start(&b->loss, path->mtu_bytes);
    bbr_train_start(&b->train, path->mtu_bytes, (uint64_t)(b->remembered_bps * b->rtt_min / 16e9));
    enter(b, BBR_TRAIN, now);
}

static void on_rtt(struct bbr *b, const struct lh_congestion_feedback *f)
{
    if (f->rtt_ns == 0) {
        if (f->arrived_bytes > 0 && b->rtt > b->rtt_min)
            b->rtt -= (b->rtt - b->rtt_min) / UNTIMED_SHARE;
        return;
    }
    b->rtt = (double)f->rtt_ns;
    if (b->rtt_min == 0 || b->rtt <= b->rtt_min * 1.01) {
        b->rtt_min_round = b->rounds;
        if (b->rtt_min == 0 || b->rtt < b->rtt_min)
            b->rtt_min = b->rtt;
    }
    if (b->round_rtt_min == 0 || b->rtt < b->round_rtt_min)
        b->round_rtt_min = b->rtt;
}

static void set_bw(struct bbr *b, double bw)
{
    bw = bbr_loss_believed(&b->loss, bw);
    b->bw = b->bw_now = b->bw_before = bw;
}

/* The longer the train, the better is what it says; but its end waits for the receiver at times. */
static void on_remaining_train(struct bbr *b, double rate)
{
    if (rate > b->bw && rate < BBR_TRAIN_AGREE * b->bw)
        set_bw(b, rate);
}

static double gain_of(const struct bbr *b, lh_time now)
{
    switch (b->state) {
    case BBR_STARTUP:
        return STARTUP_GAIN;
    case BBR_DRAIN:
        return DRAIN_GAIN;
    case BBR_DOWN:
        return DOWN_GAIN;
    case BBR_UP:
        return b->up.fast || (double)(now - b->state_ns) < b->up.ns ? b->up.gain : 1;
    case BBR_LOSS_TEST:
        return bbr_loss_test_bps(&b->loss) / b->bw * (1 - BBR_MADE_UP * b->loss.share);
    default:
        return 1;
    }
}

static double pace_of(const struct bbr *b, lh_time now)
{
    double rate = bbr_loss_believed(&b->loss, gain_of(b, now) * b->bw) / (1 - BBR_MADE_UP * b->loss.share);
    if (b->slow_spacings >= FELL_SPACINGS)
        rate = fmin(rate, b->spacing_bps);
    double rtt = fmax(fmax(b->rtt, b->rtt_min), RATE_MIN_RTT);
    return fmax(rate, 16e9 * b->mtu / rtt); /* two packets a round trip at the least */
}

/* After a stall: no round trip passes, and nothing else would ever show that the path is well. Up to a first
 * window in a round trip. */
static double untimed_rate(struct bbr *b, const struct lh_congestion_feedback *f)
{
    double rate = bbr_untimed_bps(&b->untimed, f, fmax(b->rtt_min, HOST_RTT_NS));
    double first_bps = b->rtt_min > 0 ? FIRST_WINDOW * 8e9 * b->mtu / b->rtt_min : 0;
    return b->state == BBR_STARTUP ? fmin(rate, fmin(pace_of(b, f->now), first_bps)) : 0;
}

static bool has_queue(const struct bbr *b)
{
    return b->rtt_min > 0 && b->rtt > b->rtt_min + QUEUE_DELAY * delay_unit(b);
}

static void on_rate(struct bbr *b, const struct lh_congestion_feedback *f)
{
    double rate = (double)f->rate_bps, untimed = untimed_rate(b, f);
    bool limited = f->rate_is_limited;
    if (b->state == BBR_TRAIN) /* the first packets of it say little */
        return;
    if (rate == 0 && untimed > 0) {
        rate = untimed;
        limited = true;
    }
    if (rate == 0 && f->rtt_ns != 0) {
        /* All that was in flight came in one report: at least this, if it came in a round trip, and on a path
         * that is shorter than the time between reports no more than was sent. */
        double pace = fmax(b->pace, b->pace_before);
        rate = fmin((double)f->arrived_bytes * 8e9 / (double)f->rtt_ns,
                    isinf(pace) ? pace_of(b, f->now) : pace);
        limited = true;
    }
    /* What arrives faster than it was paced was held back by one of the hosts. */
    bool strict = queue_is_short(b) || b->loss.share > STRICT_LOSS; /* what is lost by chance varies */
    double tolerance = strict ? SHORT_TOLERANCE : PACE_TOLERANCE;
    rate = fmin(rate, tolerance * (1 - b->loss.share) * fmax(b->pace, b->pace_before));
    if (rate > 0 && f->sent_ns != 0 && f->sent_ns < b->train_end_ns) {
        on_remaining_train(b, rate);
        return;
    }
    b->round_limited |= f->rate_is_limited;
    b->round_bw = fmax(b->round_bw, rate);
    b->round_full |= !limited && rate > 0;
    bool tells = rate > 0 && (!limited || (b->rtt_min < HOST_RTT_NS && !f->rate_is_limited));
    b->up.full |= b->up.seen && tells;
    double queue = bbr_up_queue_ns(&b->up, QUEUE_DELAY * HOST_RTT_NS, QUEUE_DELAY * delay_unit(b));
    b->up.queued += b->up.seen && f->rtt_ns != 0 && b->rtt > b->rtt_min + queue;
    if (b->state == BBR_SHARE) /* grows by its own rule */
        return;
    rate = bbr_loss_believed(&b->loss, rate);
    b->bw_now = !limited || rate > b->bw ? fmax(b->bw_now, rate) : b->bw_now;
    b->bw = fmax(b->bw_now, b->bw_before);
}

/* The shortest queueing delay of this round trip, in shortest round trips. */
static double queue_of(const struct bbr *b)
{
    return b->rtt_min > 0 && b->round_rtt_min > 0 ? (b->round_rtt_min - b->rtt_min) / delay_unit(b) : 0;
}

static bool exceeds_random(const struct bbr *b, double all)
{
    double random = b->loss.share * all / b->mtu;
    return b->round_lost / b->mtu > random + SHORT_LOST * (1 + sqrt(random));
}

static void on_full_queue(struct bbr *b)
{
    double queue = b->rtt - b->rtt_min;
    bool own = b->state == BBR_CRUISE || b->state == BBR_UP || b->state == BBR_DOWN;
    if (!own || shared(b) || queue * b->bw < SHORT_PACKETS * 8e9 * b->mtu)
        return;
    b->full_queue = queue;
    b->full_round = b->rounds;
}

/* In the round trip that ends, more than that share of the packets. */
static bool is_marked(const struct bbr *b, double share)
{
    return (double)b->round_marked > share * (double)b->round_arrived;
}

/* Packets have waited lately. */
static bool bottleneck_queues(const struct bbr *b)
{
    return b->queue_seen && b->rounds < b->queue_round + QUEUE_ROUNDS;
}

/* Of the round trip that ends. Random loss is no congestion: loss counts with a sign of a queue only. */
static bool congested(struct bbr *b)
{
    double all = (double)b->round_arrived + fmax(b->round_lost, 0);
    if (all == 0)
        return false;
    bool marked = is_marked(b, b->state == BBR_SHARE ? SHARE_MARKED : MARKED);
    if (!has_queue(b))
        return marked;
    if (exceeds_random(b, all))
        on_full_queue(b);
    return marked || bbr_loss_is_excess(&b->loss, b->round_lost, all, false);
}

/* ---- loss without a queue ---------------------------------------------------------------------------- */

/* The round trip that ends. */
static struct bbr_loss_sample this_round(const struct bbr *b, lh_time now)
{
    struct bbr_loss_sample round = {.arrived = (double)b->round_arrived, .lost = fmax(b->round_lost, 0)};
    double ns = (double)(now - b->round_ns);
    bool usual = ns <= 2 * fmax(b->rtt, LONG_ROUND_NS);     /* no application was idle */
    bool timed = b->round_full || b->rtt_min < HOST_RTT_NS; /* of short ones reports may tell no rate */
    if (!b->round_stalled && timed && !b->round_limited && usual) {
        round.timed = round.arrived;
        round.ns = ns;
    }
    return round;
}

/* What arrived or was lost in this round trip was sent in this state; losses are seen a little later. */
static bool was_sent_in_state(const struct bbr *b)
{
    return b->rounds > b->state_round + 2 && b->rounds > b->cut_round + 2;
}

static enum bbr_loss_found find_loss(struct bbr *b, lh_time now)
{
    const struct bbr_loss_sample round = this_round(b, now);
    bool queue = has_queue(b), limited = b->round_limited && !b->round_full;
    if (b->state == BBR_LOSS_TEST) {
        bool last = b->rounds > b->state_round + TEST_ROUNDS;
        return was_sent_in_state(b)
                   ? bbr_loss_on_test(&b->loss, &round, last, b->tested_queue, b->bw, b->rounds, now)
                   : BBR_LOSS_NOTHING;
    }
    /* Of few packets, or of short bursts: no loss proves nothing. */
    if (limited && !bbr_loss_is_excess(&b->loss, round.lost, round.arrived + round.lost, true))
        return BBR_LOSS_NOTHING;
    if (b->state == BBR_UP && b->up.seen && !queue && !limited)
        return bbr_loss_on_up(&b->loss, &round, b->bw, b->rounds, now);
    if ((b->state == BBR_CRUISE || b->state == BBR_SHARE) && was_sent_in_state(b)) {
        b->tested_queue = queue;
        return bbr_loss_on_cruise(&b->loss, &round, queue, b->bw, b->rounds, now);
    }
    return BBR_LOSS_NOTHING;
}

static void on_loss(struct bbr *b, lh_time now)
{
    if (has_queue(b)) {
        b->queue_seen = true;
        b->queue_round = b->rounds;
    }
    bbr_loss_on_round(&b->loss, b->rounds, now);
    switch (find_loss(b, now)) {
    case BBR_LOSS_UNKNOWN:
        enter(b, BBR_LOSS_TEST, now);
        break;
    case BBR_LOSS_QUEUE:
        set_bw(b, fmin(b->bw, b->loss.test_bps));
        enter(b, BBR_CRUISE, now);
        break;
    case BBR_LOSS_END:
    case BBR_LOSS_RANDOM:
        set_bw(b, fmax(b->bw, bbr_loss_take_restored(&b->loss)));
        enter(b, BBR_CRUISE, now);
        break;
    case BBR_LOSS_POLICED:
        set_bw(b, b->loss.policed_bps);
        enter(b, b->state == BBR_UP ? BBR_DOWN : BBR_CRUISE, now);
        break;
    case BBR_LOSS_NOTHING:
        if (b->state == BBR_CRUISE && b->loss.share > STRICT_LOSS && !has_queue(b)) {
            double delivered = bbr_loss_delivered_bps(&b->loss);
            if (delivered > 0 && delivered < NOT_DELIVERED * b->bw)
                set_bw(b, delivered);
        }
        break;
    }
}

/* The application did not limit the round, and it brought far less than the estimate. */
static bool is_much_slower(const struct bbr *b)
{
    return b->round_full && b->round_bw > 0 && b->round_bw < MUCH_SLOWER * b->bw;
}

/* What was delivered is what the path gives; to a host that does not keep up with its rate it may give more.
 * While others share it, somewhat less: the queue must get shorter, or everybody goes on losing. */
static void on_congestion(struct bbr *b, const struct lh_congestion_feedback *f)
{
    bool cruises = b->state == BBR_CRUISE || b->state == BBR_DOWN;
    if (cruises && b->round_bw > 0 && (!shared(b) || b->rounds >= b->cut_round + 2)) {
        double to = (shared(b) ? SHARED_CUT : 1) * b->round_bw;
        double minimum = is_much_slower(b) ? 0 : CUT_MAX * b->bw;
        to = to > minimum ? to : minimum;
        if (to < b->bw)
            set_bw(b, to);
        b->cut_round = b->rounds;
    }
    if ((b->state == BBR_UP && (b->up.seen || !shared(b))) || (b->state == BBR_CRUISE && !shared(b)))
        enter(b, BBR_DOWN, f->now);
}

/* By the shortest delay of the last round trip: a host that pauses is not a slower path. */
static bool became_slower(const struct bbr *b, const struct lh_congestion_feedback *f)
{
    return (double)f->rate_bps < SLOWER * b->bw && !f->rate_is_limited && b->queue > 0.1 * delay_unit(b);
}

/* ---- sharing ----------------------------------------------------------------------------------------- */

/* The time of some of this flow's packets, in share units: its own pace makes that much of a queue. */
static double packets_delay(const struct bbr *b, double packets)
{
    return b->bw > 0 ? packets * 8e9 * b->mtu / b->bw / share_unit(b) : 0;
}

/* The same for all flows on long paths: else those on the longest yield last. */
static double long_queue(const struct bbr *b)
{
    return fmin(SHARE_QUEUE, SHARE_QUEUE_NS / share_unit(b));
}

static bool is_empty(const struct bbr *b, double queue, double empty)
{
    return queue < empty + packets_delay(b, 0.25);
}

static void share_cut(struct bbr *b)
{
    if (b->cuts++ == 0)
        b->uncut_bw = b->bw;
    b->last_bw = b->bw;
    set_bw(b, SHARE_CUT * (is_much_slower(b) ? b->round_bw : b->bw));
    b->cut_round = b->rounds;
}

static void share_grow(struct bbr *b)
{
    double packets = bdp_of(b) / b->mtu;
    double slow = fmin(fmax(b->rtt_min / SHARE_RTT_NS, 1 / SHARE_RTT_MAX), SHARE_RTT_MAX);
    double more = slow * fmax(SHARE_GROWTH * sqrt(packets), SHARE_MIN);
    if (b->round_full || b->round_bw > SHARE_USED * b->bw)
        set_bw(b, b->bw * (1 + more / fmax(packets, 1)));
}

static void share_round(struct bbr *b, bool bad, double queue)
{
    double longest = long_queue(b);
    bool above = queue > longest + fmin(packets_delay(b, SHARE_PACKETS), longest);
    bool shrinks = queue < b->last_queue - SHARE_SHRINKS;
    b->last_queue = queue;
    if (!above && !bad)
        share_grow(b);
    else if (b->rounds >= b->cut_round + 2 && !shrinks)
        share_cut(b);
}

static void set_foreign(struct bbr *b, bool foreign)
{
    b->foreign = foreign;
    b->foreign_round = b->rounds;
    b->cuts = 0;
    b->queue_longest = 0;
}

/* This flow has yielded twice, the queue was not empty since, and others took what it left: back to the rate
 * before that. */
static void on_futile(struct bbr *b, lh_time now)
{
    set_bw(b, b->uncut_bw);
    set_foreign(b, true);
    enter(b, BBR_CRUISE, now);
}

static void check_competition(struct bbr *b, double queue)
{
    b->queue_longest = fmax(b->queue_longest, queue);
    bool over = b->rounds > b->foreign_round + FOREIGN_ROUNDS;
    bool yield = b->queue_longest > FOREIGN_LONGEST && queue < FOREIGN_SHORTEST * b->queue_longest;
    if (is_empty(b, queue, SHARE_EMPTY) || (b->foreign && (over || yield)))
        set_foreign(b, false);
}

/* This flow's own, of a rate that was found too high; or, when it has emptied that and there is one again,
 * that of all. */
static void on_long_queue(struct bbr *b, lh_time now)
{
    bool again = b->long_round != 0 && b->rounds <= b->long_round + LONG_AGAIN;
    if (shared(b) || again) {
        enter(b, BBR_SHARE, now);
        b->last_queue = 0;
        return;
    }
    b->long_round = b->rounds;
    if (b->round_full && b->round_bw > 0 && b->round_bw < b->bw)
        set_bw(b, b->round_bw);
    enter(b, BBR_DRAIN, now);
}

static void on_sharing(struct bbr *b, bool bad, lh_time now)
{
    if (b->round_rtt_min == 0)
        return;
    double queue = queue_of(b) * delay_unit(b) / share_unit(b);
    check_competition(b, queue);
    bool cruises = b->state == BBR_CRUISE && b->rounds > b->state_round + 1 && !b->foreign;
    double longest = (shared(b) ? SHARE_SEEN : 1) * long_queue(b) + packets_delay(b, SHARE_PACKETS);
    if (cruises && (queue > longest || is_marked(b, MARKED)))
        on_long_queue(b, now);
    if (b->state != BBR_SHARE)
        return;
    share_round(b, bad, queue);
    if (b->cuts >= FUTILE_CUTS)
        on_futile(b, now);
    else if (b->bw > SHARE_SPARE * b->last_bw && is_empty(b, queue, SHARE_SPARE_EMPTY))
        enter(b, BBR_UP, now);
}

/* A train that fits a policer's bucket shows any rate, and then nearly all of a message is dropped. A short
 * one has no round trip that the application does not limit, so find_loss() sees nothing. */
static void on_flood(struct bbr *b, lh_time now)
{
    double arrived = (double)b->round_arrived, lost = fmax(b->round_lost, 0);
    bool is_limited = b->round_limited && !b->round_full;
    bool floods = is_limited && lost >= STALL_PACKETS * b->mtu &&
                  bbr_loss_lately(&b->loss, arrived, lost) > FLOOD_LOST;
    if (!floods || b->rounds < b->cut_round + 2 || b->state == BBR_TRAIN || b->state == BBR_LOSS_TEST)
        return;
    double delivered = arrived * 8e9 / fmax((double)(now - b->round_ns), b->rtt_min);
    set_bw(b, fmin(fmax(delivered, b->bw / STALL_CUT), b->bw));
    b->cut_round = b->rounds;
    enter(b, BBR_CRUISE, now);
}

static void on_round(struct bbr *b, const struct lh_congestion_feedback *f)
{
    on_flood(b, f->now);
    bool bad = congested(b);
    bool longer = queue_of(b) * delay_unit(b) > SHORT_LONGER * b->full_queue;
    if (longer || b->rounds > b->full_round + SHORT_ROUNDS)
        b->full_queue = 0;
    on_sharing(b, bad, f->now);
    bool shares = b->state == BBR_SHARE; /* has its own rules */
    on_loss(b, f->now);
    if (bad && !shares)
        on_congestion(b, f);
    else if (!shares && queue_of(b) > 1.5 && b->round_full && b->round_bw < b->bw && b->round_bw > 0)
        set_bw(b, b->round_bw);
    if (b->cycle_rtt_min == 0 || (b->round_rtt_min != 0 && b->round_rtt_min < b->cycle_rtt_min))
        b->cycle_rtt_min = b->round_rtt_min;
    b->messages_until = b->round_limited ? b->rounds + PAUSED_ROUNDS : b->messages_until;
    bbr_loss_end_round(&b->loss, (double)b->round_arrived, fmax(b->round_lost, 0), b->rounds);
    b->round_arrived = b->round_marked = 0;
    b->round_lost = fmin(b->round_lost, 0);
    b->queue = b->round_rtt_min > b->rtt_min ? b->round_rtt_min - b->rtt_min : 0;
    b->round_rtt_min = b->round_bw = 0;
    b->round_full = b->round_limited = b->round_stalled = false;
    b->round_ns = f->now;
    b->pace_before = b->pace;
    b->pace = 0;
}

/* ---- states ------------------------------------------------------------------------------------------ */

/* There is more, and what was put on top is no queue: it is another path. */
static bool queue_is_other(const struct bbr *b)
{
    double shown = 1 + (b->up.gain - 1) * b->up.ns / b->rtt_min / 2;
    return b->bw_now > shown * b->up.bw && b->rtt - b->rtt_min < SHORT_UP / 2 * b->full_queue;
}

static void end_lossy_up(struct bbr *b, const struct bbr_up_result *result)
{
    bool queues = bbr_up_is_more(&b->up, result) || bottleneck_queues(b) || b->up.queued >= UP_QUEUED;
    set_bw(b, fmin(b->bw, b->up.bw));
    bbr_loss_on_limit(&b->loss, queues, b->bw, b->rounds);
}

static void end_up(struct bbr *b, bool path_limits, lh_time now)
{
    if (queue_is_other(b))
        b->full_queue = 0;
    bool lossy = b->loss.share > STRICT_LOSS, by_cohort = lossy_messages(b);
    struct bbr_up_result up =
        by_cohort ? bbr_up_by_cohort(&b->up, &b->loss)
                  : bbr_up_by_rates(&b->up, b->bw_now, fmax(b->rtt, b->rtt_min), bdp_of(b) / b->mtu);
    double growth = lossy ? bbr_loss_growth(&b->loss, up.shown, up.packets) : UP_GROWTH;
    bool more = up.bps > growth * b->up.bw && !path_limits;
    if (more && by_cohort && up.tells) {
        set_bw(b, up.bps);
        enter(b, BBR_UP, now);
    } else if (more && !by_cohort) {
        b->up.bw = b->bw_now;
        b->up.gain = UP_FAST_GAIN;
        b->up.fast = true;
        b->state_round = b->rounds;
    } else {
        if (lossy && up.tells)
            end_lossy_up(b, &up);
        enter(b, BBR_DOWN, now);
    }
}

static void on_remembered(struct bbr *b, const struct lh_congestion_feedback *f, bool path_limits)
{
    bool right = !path_limits && b->rtt < 1.05 * b->rtt_min;
    set_bw(b, right ? b->remembered_bps : (double)f->rate_bps);
    enter(b, BBR_CRUISE, f->now);
}

static void on_train(struct bbr *b, const struct lh_congestion_feedback *f, bool path_limits)
{
    uint64_t arrived = f->arrived_total_bytes - b->arrived_before;
    if (b->remembered_bps != 0 && f->rate_bps != 0 && arrived >= BBR_TRAIN_BYTES) {
        on_remembered(b, f, path_limits);
        return;
    }
    struct bbr_train_path path = {.settled_bytes = b->settled_bytes,
                                  .lost_bytes = f->lost_total_bytes - b->lost_before,
                                  .rtt_min = b->rtt_min,
                                  .since_start = (double)(f->now - b->state_ns),
                                  .is_limit = path_limits};
    struct bbr_train_rate rate = bbr_train_on_feedback(&b->train, f, &path);
    if (rate.bps == 0)
        return;
    set_bw(b, rate.bps);
    b->train_end_ns = f->now;
    enter(b, rate.is_of_path ? BBR_CRUISE : BBR_STARTUP, f->now);
}

/* Packets come in far slower than they left, and wait, where there was no queue: the path has become slower,
 * before a round trip shows what it delivers. */
static bool fell(const struct bbr *b)
{
    double queue = FELL_QUEUE * delay_unit(b);
    bool alone = (b->state == BBR_CRUISE || b->state == BBR_UP) && b->queue < queue && !b->foreign &&
                 b->rounds > FELL_ROUNDS;
    return alone && b->spacing_bps < FELL * b->bw && b->rtt > b->rtt_min + queue;
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
    b->slow_spacings = fell(b) ? b->slow_spacings + 1 : 0;
}

/* Others may come or leave meanwhile. */
static bool has_cruised(const struct bbr *b, lh_time now)
{
    uint64_t rounds = shared(b) ? SHARED_ROUNDS + b->cruise_rounds % 2 : b->cruise_rounds;
    bool spanned = b->rtt_min >= HOST_RTT_NS || (double)(now - b->state_ns) >= (double)rounds * HOST_RTT_NS;
    bool policed = bbr_loss_is_policed(&b->loss) && b->bw > POLICED_BW * b->loss.max_bps;
    return !policed && spanned && b->rounds >= b->state_round + rounds;
}

static void on_startup(struct bbr *b, bool path_limits, lh_time now)
{
    bool policed = b->bw >= bbr_loss_believed(&b->loss, INFINITY);
    if (!path_limits && !policed)
        return;
    double maximum = STARTUP_GAIN * b->bw;
    double spacing = b->spacing_bps < maximum ? b->spacing_bps : maximum;
    if (spacing > b->bw)
        set_bw(b, spacing);
    enter(b, policed ? BBR_CRUISE : BBR_DRAIN, now);
}

static void on_cruise(struct bbr *b, const struct lh_congestion_feedback *f, bool slower)
{
    if (slower && became_slower(b, f)) {
        set_bw(b, (double)f->rate_bps);
        enter(b, BBR_DRAIN, f->now);
    } else if (b->rounds > b->rtt_min_round + RTT_MIN_ROUNDS) {
        enter(b, BBR_PROBE_RTT, f->now);
    } else if (has_cruised(b, f->now) && !f->rate_is_limited) {
        enter(b, queue_is_short(b) ? BBR_DOWN : BBR_UP, f->now);
        b->up_next = b->state == BBR_DOWN;
    }
}

static void on_up(struct bbr *b, bool own, bool path_limits, lh_time now)
{
    if (own && !b->up.seen) {
        b->up.seen = true;
        b->state_round = b->rounds;
    }
    if (b->up.seen && b->rounds > b->state_round)
        end_up(b, path_limits, now);
}

static void on_state(struct bbr *b, const struct lh_congestion_feedback *f)
{
    bool own = f->sent_ns != 0 && f->sent_ns >= b->state_ns; /* of what was sent in this state */
    double passed = PATH_LIMITS * (1 - b->loss.share) * (double)f->sends_bps;
    bool path_limits = f->rate_bps != 0 && (double)f->rate_bps < passed;
    switch (b->state) {
    case BBR_TRAIN:
        on_train(b, f, path_limits);
        break;
    case BBR_STARTUP:
        on_startup(b, path_limits, f->now);
        break;
    case BBR_DRAIN:
    case BBR_DOWN:
        if ((double)f->in_flight_bytes <= bdp_of(b) + 2 * b->mtu || b->rounds > b->state_round + 1)
            enter(b, b->up_next ? BBR_UP : BBR_CRUISE, f->now);
        break;
    case BBR_SHARE:
        if (b->rounds > b->rtt_min_round + RTT_MIN_ROUNDS)
            enter(b, BBR_PROBE_RTT, f->now);
        break;
    case BBR_CRUISE:
        on_cruise(b, f, own && path_limits);
        break;
    case BBR_PROBE_RTT:
        if (b->rounds > b->state_round + 2) {
            b->rtt_min = b->rtt;
            b->rtt_min_round = b->rounds;
            enter(b, BBR_CRUISE, f->now);
        }
        break;
    case BBR_UP:
        on_up(b, own, path_limits, f->now);
        break;
    case BBR_LOSS_TEST: /* on_loss() ends it */
        break;
    }
}

/* Nothing of a whole window arrived. */
static void on_stall(struct bbr *b, const struct lh_congestion_feedback *f)
{
    bool again = b->round_stalled; /* a window is reported in parts */
    b->round_stalled = true;
    double lost = fmax(b->round_lost, 0) + (double)f->lost_bytes;
    if (again || b->state == BBR_TRAIN || f->lost_bytes < STALL_PACKETS * b->mtu ||
        !bbr_loss_is_stall(&b->loss, (double)b->round_arrived, lost))
        return;
    set_bw(b, b->bw / STALL_CUT);
    enter(b, BBR_STARTUP, f->now);
}

static void note_pace(struct bbr *b, lh_time now)
{
    b->pace = b->state <= BBR_STARTUP ? INFINITY : fmax(b->pace, pace_of(b, now));
}

static void bbr_on_feedback(void *state, const struct lh_congestion_feedback *f)
{
    struct bbr *b = state;
    if (!b->counted) {
        b->counted = true;
        b->arrived_before = f->arrived_total_bytes - f->arrived_bytes;
        b->lost_before = f->lost_total_bytes - f->lost_bytes;
        b->missing = (double)b->lost_before;
    }
    b->settled_bytes = f->arrived_total_bytes + f->lost_total_bytes - b->arrived_before - b->lost_before;
    if (f->arrived_bytes == 0 && f->lost_bytes > 0 && f->rtt_ns == 0)
        on_stall(b, f);
    on_spacing(b, f);
    b->round_arrived += f->arrived_bytes;
    /* At once, by what has passed: a reordering window later it would count with the next arrivals. */
    double missing = (double)f->passed_total_bytes - (double)f->arrived_total_bytes;
    b->round_lost += missing - b->missing;
    b->missing = missing;
    b->round_marked += f->marked_bytes;
    on_rtt(b, f);
    bbr_cohort_on_feedback(&b->up.cohort, f);
    note_pace(b, f->now);
    on_rate(b, f);
    if (f->rtt_ns != 0 && f->arrived_at_send_bytes >= b->round_end_bytes) {
        b->round_end_bytes = f->arrived_total_bytes;
        b->rounds++;
        on_round(b, f);
    }
    on_state(b, f);
    note_pace(b, f->now);
}

static void bbr_on_timer(void *state, lh_time now)
{
    (void)state, (void)now;
}

/* What the state wants in flight: enough for the path, and for others' queue not to take the share of a flow
 * with a short round trip. */
static double window_of(const struct bbr *b, double rate)
{
    double bdp = bdp_of(b);
    if (b->state == BBR_PROBE_RTT)
        return bdp / 2;
    double queue = fmin(b->queue, 2 * b->rtt_min);
    double window = fmax((b->state == BBR_STARTUP || b->up.fast ? 3 : 2) * bdp,
                         b->bw * (1.5 * b->rtt_min + queue) / 8e9);
    window += rate * fmin(b->rtt_min / 4, 500e3) / 8e9; /* reports that are held back, bursts */
    return b->state == BBR_STARTUP ? fmin(window, STARTUP_GROWTH * (double)b->settled_bytes) : window;
}

static void decide_train(const struct bbr *b, struct lh_congestion_decision *d, double *rate,
                         double *window)
{
    bool remembered = b->remembered_bps > 0;
    *rate = remembered ? b->remembered_bps / 2 : BBR_TRAIN_BPS;
    *window = b->train.bytes > b->settled_bytes ? (double)(b->train.bytes - b->settled_bytes) : 0;
    d->burst_bytes = remembered ? 0 : (uint64_t)BBR_TRAIN_BURST_PACKETS * b->mtu;
    d->window_is_exact = true;
}

static void bbr_decide(const void *state, lh_time now, struct lh_congestion_decision *d)
{
    const struct bbr *b = state;
    *d = (struct lh_congestion_decision){.total_bytes = UINT64_MAX, .next_ns = LH_TIME_NEVER};
    double rate, window;
    if (b->state == BBR_TRAIN) {
        decide_train(b, d, &rate, &window);
    } else {
        rate = pace_of(b, now);
        window = window_of(b, rate);
        if (!bottleneck_queues(b))
            d->burst_bytes = bbr_loss_burst_bytes(&b->loss, rate);
    }
    rate = fmax(rate, RATE_MIN_BPS);
    window = fmax(window, 4.0 * b->mtu);
    d->rate_bps = rate < (double)b->rate_max_bps ? (uint64_t)rate : b->rate_max_bps;
    d->window_bytes = window < (double)b->window_max_bytes ? (uint64_t)window : b->window_max_bytes;
}

static void bbr_view(const void *state, struct lh_congestion_view *view)
{
    static const char *const names[] = {"train", "startup",   "drain", "cruise",   "up",
                                        "down",  "probe-rtt", "share", "loss-test"};
    const struct bbr *b = state;
    *view = (struct lh_congestion_view){.bandwidth_bps = (uint64_t)b->bw,
                                        .rtt_minimum_ns = (lh_time)b->rtt_min,
                                        .state = names[b->state],
                                        .tells_loss = b->loss.test_round != 0,
                                        .random_loss = b->loss.share,
                                        .policed_rate_bps =
                                            b->loss.max_bps > 0 ? (uint64_t)b->loss.policed_bps : 0};
}

const struct lh_congestion bbr_congestion = {
    .name = "bbr",
    .help = "no parameters; models bandwidth and round trip (after draft-ietf-ccwg-bbr)",
    .parse = bbr_parse,
    .state_bytes = sizeof(struct bbr),
    .start = bbr_start,
    .on_feedback = bbr_on_feedback,
    .on_timer = bbr_on_timer,
    .decide = bbr_decide,
    .view = bbr_view,
};
