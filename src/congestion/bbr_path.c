/* SPDX-License-Identifier: BSD-3-Clause */
#include "congestion/bbr_path.h"

#include <math.h>

#include "base/min_max.h"

/* ---- train ----------------------------------------------------------------------------------------- */

#define PACKETS_MIN   10
#define GROWTH        4   /* the next is so many times longer; */
#define LONGER_MAX    2   /* so many of these, or of those that the window cut in pieces */
#define LOST          4   /* lost of it, a greater part than this: the path is too narrow for it */
#define DENSE_NS      4e6 /* in less a train that came in pieces was no idle application's */
#define REMEMBERED_NS (24 * 3600 * LH_NS_PER_S)
#define GAP           8 /* part of a round trip: a pause of the sender's, not of the path */

static uint64_t first_bytes(uint32_t mtu)
{
    return lh_max(BBR_TRAIN_BYTES, (uint64_t)PACKETS_MIN * mtu);
}

void bbr_train_start(struct bbr_train *train, uint32_t mtu_bytes, uint64_t bytes)
{
    *train = (struct bbr_train){.mtu = mtu_bytes};
    train->bytes = bytes != 0 ? bytes : first_bytes(mtu_bytes);
    train->bytes = (train->bytes + mtu_bytes - 1) / mtu_bytes * mtu_bytes;
}

static double rate_of(double bytes, double ns)
{
    return ns > 0 ? bytes * 8e9 / ns : INFINITY;
}

/* The sender had no window: the packets before it were lost. What comes then begins a train. */
static bool is_gap(double rtt_min, const struct lh_congestion_feedback *f)
{
    double bits = 8e9 * (double)f->train_bytes;
    double gap = rtt_min / GAP;
    return f->sends_bps != 0 && bits / (double)f->train_bps > gap && bits / (double)f->sends_bps > gap;
}

static void on_spacing(struct bbr_train *train, const struct lh_congestion_feedback *f, double rtt_min)
{
    train->busy_bytes += f->arrived_bytes;
    if (f->train_bps != 0 && !is_gap(rtt_min, f)) {
        train->all.ns += (double)f->train_bytes * 8e9 / (double)f->train_bps;
        train->all.bytes += (double)f->train_bytes;
    } else if (f->arrived_bytes != 0) {
        train->starts++;
        train->first_bytes += f->arrived_bytes;
        train->busy_bytes = f->arrived_bytes;
    }
    double all = (double)train->bytes - (double)train->base - (double)train->first_bytes;
    if (train->quarter.ns == 0 && train->all.bytes >= all / 4)
        train->quarter = train->all;
    if (train->half.ns == 0 && train->all.bytes >= all / 2)
        train->half = train->all;
}

/* How fast came what followed that part. */
static double remaining_of(const struct bbr_train *train, const struct bbr_spacing *part)
{
    return rate_of(train->all.bytes - part->bytes, train->all.ns - part->ns);
}

/* What was held back by a host comes too fast, and what came before it too slowly. */
static bool agrees(const struct bbr_train *train, const struct bbr_spacing *part)
{
    double first = rate_of(part->bytes, part->ns);
    double rest = remaining_of(train, part);
    return part->ns > 0 && train->all.ns > part->ns && train->all.bytes > part->bytes &&
           first < BBR_TRAIN_AGREE * rest && rest < BBR_TRAIN_AGREE * first;
}

/* On a path that is shorter than the time between reports, the window cuts a train in pieces, and a longer
 * one shows no more. Those of an idle application take longer. */
static bool is_dense(const struct bbr_train *train, const struct bbr_train_path *path)
{
    return train->starts > 1 && path->since_start - train->since < DENSE_NS;
}

/* Short messages one after the other are no train, however many. */
static void next_train(struct bbr_train *train, const struct bbr_train_path *path)
{
    bool pieces = train->starts > 1;
    train->longer += !pieces || is_dense(train, path);
    if (pieces)
        train->start = path->settled_bytes;
    train->bytes += pieces ? first_bytes(train->mtu) : GROWTH * (train->bytes - train->start);
    train->all = train->quarter = train->half = (struct bbr_spacing){0, 0};
    train->base = path->settled_bytes;
    train->since = path->since_start;
    train->starts = 0;
    train->first_bytes = 0;
}

static struct bbr_train_rate evaluate(const struct bbr_train *train, const struct lh_congestion_feedback *f,
                                      const struct bbr_train_path *path, bool believable, bool lost)
{
    double spacing = rate_of(train->all.bytes, train->all.ns);
    struct bbr_train_rate rate = {f->rate_bps != 0 ? (double)f->rate_bps : spacing,
                                  path->is_limit && believable};
    bool paused = train->base > 0 || train->starts > 1; /* the sender, which is in its delivery rate */
    if (believable && !path->is_limit && paused && spacing > BBR_TRAIN_AGREE * rate.bps) {
        rate.bps = spacing;
        rate.is_of_path = spacing * BBR_TRAIN_AGREE < BBR_TRAIN_BPS;
    }
    if (!believable && train->half.ns > 0)
        rate.bps = fmin(rate.bps, rate_of(train->half.bytes, train->half.ns));
    if (is_dense(train, path)) { /* what all of them brought */
        double arrived = (double)(path->settled_bytes - path->lost_bytes);
        rate.bps = rate_of(arrived, path->since_start + 1);
        rate.is_of_path = false;
    } else if (train->all.ns == 0) { /* all of it in one report, or most of it lost */
        double over = lost || path->rtt_min == 0 ? path->since_start : path->rtt_min;
        rate.bps = rate_of((double)(train->busy_bytes + train->mtu), over + 1);
    }
    if (believable && train->quarter.ns > 0) /* what waited in a host came too fast */
        rate.bps = fmin(rate.bps, remaining_of(train, &train->quarter));
    return rate;
}

struct bbr_train_rate bbr_train_on_feedback(struct bbr_train *train, const struct lh_congestion_feedback *f,
                                            const struct bbr_train_path *path)
{
    static const struct bbr_train_rate unknown;
    bool lost = path->lost_bytes > (train->bytes - train->base) / LOST;
    on_spacing(train, f, path->rtt_min);
    bool all = path->settled_bytes + train->mtu > train->bytes;
    bool believable = agrees(train, &train->quarter) && train->half.ns > 0;
    if (all)
        believable |= agrees(train, &train->half);
    /* A sender's first packets are slow: as fast as they left is not as fast as the path. */
    bool tells = believable && (path->is_limit || train->longer > 0);
    if (!tells && !all)
        return unknown;
    if (!tells && !lost && train->longer < LONGER_MAX) {
        next_train(train, path);
        return unknown;
    }
    return evaluate(train, f, path, believable, lost);
}

bool bbr_train_remembers(const struct lh_congestion_path *path)
{
    double rtt = (double)path->rtt_ns, then = (double)path->remembered_rtt_ns;
    double train = (double)path->remembered_rate_bps * rtt / 16e9;
    return path->remembered_rate_bps != 0 && rtt > 0 && rtt < 1.25 * then && rtt > 0.8 * then &&
           path->remembered_age_ns < REMEMBERED_NS && train > BBR_TRAIN_BYTES;
}

/* ---- cohort ---------------------------------------------------------------------------------------- */

void bbr_cohort_start(struct bbr_cohort *cohort, double from_ns, double until_ns)
{
    *cohort = (struct bbr_cohort){.from_ns = from_ns, .until_ns = until_ns};
}

void bbr_cohort_on_feedback(struct bbr_cohort *cohort, const struct lh_congestion_feedback *f)
{
    if (f->train_bps != 0)
        cohort->spacing_ns += (double)f->train_bytes * 8e9 / (double)f->train_bps;
    double sent_ns = (double)f->sent_ns;
    if (f->rtt_ns == 0 || sent_ns < cohort->from_ns || sent_ns > cohort->until_ns)
        return;
    if (!cohort->begun) {
        cohort->begun = true;
        cohort->first_ns = f->sent_ns;
        cohort->first_passed = f->passed_total_bytes;
        cohort->first_arrived = f->arrived_total_bytes;
        cohort->spacing_ns = 0;
    } else if (f->sent_ns > cohort->first_ns) { /* reports may come in another order */
        cohort->sent_ns = (double)(f->sent_ns - cohort->first_ns);
        cohort->arrived_ns = cohort->spacing_ns;
        cohort->bytes = (double)(f->passed_total_bytes - cohort->first_passed);
        cohort->arrived_bytes = (double)(f->arrived_total_bytes - cohort->first_arrived);
    }
}

double bbr_cohort_sent_bps(const struct bbr_cohort *cohort)
{
    return cohort->sent_ns > 0 ? cohort->bytes * 8e9 / cohort->sent_ns : 0;
}

/* So many bytes of it, in the longer of the times in which they left and arrived. */
static double cohort_bps(const struct bbr_cohort *cohort, double bytes)
{
    double ns = fmax(cohort->sent_ns, cohort->arrived_ns);
    return ns > 0 ? bytes * 8e9 / ns : 0;
}

double bbr_cohort_delivered_bps(const struct bbr_cohort *cohort)
{
    return cohort_bps(cohort, cohort->arrived_bytes);
}

/* ---- arrivals without a time ------------------------------------------------------------------------ */

#define UNTIMED 4 /* reports in a row */

double bbr_untimed_bps(struct bbr_untimed *untimed, const struct lh_congestion_feedback *f, double span_ns)
{
    if (f->arrived_bytes == 0)
        return 0;
    untimed->reports = f->rtt_ns == 0 ? untimed->reports + 1 : 0;
    untimed->bytes = untimed->reports > 0 ? untimed->bytes + f->arrived_bytes : 0;
    double ns = (double)(f->now - untimed->since_ns);
    if (untimed->reports > 0 && ns < span_ns)
        return 0;
    double bps = untimed->reports > UNTIMED ? (double)untimed->bytes * 8e9 / ns : 0;
    untimed->since_ns = f->now;
    untimed->bytes = 0;
    return bps;
}

/* ---- loss ------------------------------------------------------------------------------------------ */

#define EXCESS_LOSS       0.015 /* above the random loss */
#define EXCESS_QUEUE      2     /* and so many deviations, with a queue, */
#define EXCESS_PACKETS    4     /* or packets and deviations without */
#define LOSS_PACKETS      32    /* fewer say nothing */
#define LOSS_SAMPLE       1024  /* packets after which what was before counts half */
#define LOSS_UNTESTED     0.01  /* more is not taken for random without a test */
#define SHARE_MAX         0.5   /* more is not made up for */
#define TEST_GAIN         0.5   /* of what was delivered: others may cause the greater part of the loss */
#define TEST_LOST         32    /* packets, if the loss is the path's own: a deviation of a sixth */
#define TEST_OWN          0.75  /* of the loss at the higher rate; less: it depends on the rate */
#define DELIVERED_PACKETS 128
#define STALL_LOST        0.4 /* lately, of what does not leave at random */
#define UP_LOSSY          0.6 /* of what `up` sent on top must arrive, or others lose it, */
#define UP_DEVIATIONS     1   /* less so many of what random loss leaves of a round trip's packets, */
#define UP_MIN            0.4 /* and at the minimum that */
#define LIMITS            3   /* in a row, where less was lost lately: others have come; */
#define LIMITS_ALWAYS     5   /* or where as much was lost from the start */
#define LOWEST_PACKETS    256
#define LOWEST_ROUNDS     1024
#define DOUBTED_ROUNDS    256
#define DOUBTED_LOSS      0.05
#define DOUBTED_BPS       0.5
#define TEST_AGAIN        4       /* rounds; */
#define TEST_RENEW        64      /* and after that time, as long as random loss is made up for */
#define TEST_RISE         1.25    /* of what the last one found, without another */
#define POLICED_ROUNDS    32      /* until the next probe, */
#define POLICED_NS        100e6   /* and that time on short paths; */
#define POLICED_LONGER    16      /* twice as long each time, up to so much: */
#define POLICED_SAME      1.25    /* of the rate that was probed last; more is another, */
#define POLICED_LESS      1.03    /* and less by that: a burst may have been all that was dropped */
#define POLICED_STEP      1.125   /* of the rate is the first probe: a full bucket hides that it fails; */
#define POLICED_STEPS     2       /* so many times more is each that did not fail, */
#define POLICED_STEP_MAX  1.5     /* up to that, */
#define POLICED_GONE      8       /* until there is no policer */
#define POLICED_PACKETS   512     /* that show, */
#define POLICED_LOSS      0.003   /* by so much above the random loss, that the rate is too high */
#define POLICED_BURST     32768.0 /* at once: buckets hold 64 KB and more; */
#define POLICED_BURST_NS  250e3   /* and so long at the rate */
#define POLICED_LOWERED   3       /* in a row without a test; once, where it is far too high */

void bbr_loss_start(struct bbr_loss *loss, uint32_t mtu_bytes)
{
    *loss = (struct bbr_loss){.mtu = mtu_bytes};
}

static double share_of(const struct bbr_loss_sample *sample)
{
    double all = sample->arrived + sample->lost;
    return all > 0 ? sample->lost / all : 0;
}

static double packets_of(const struct bbr_loss *loss, const struct bbr_loss_sample *sample)
{
    return (sample->arrived + sample->lost) / loss->mtu;
}

/* 0: unknown. */
static double delivered_bps(const struct bbr_loss_sample *sample)
{
    return sample->ns > 0 ? sample->timed * 8e9 / sample->ns : 0;
}

bool bbr_loss_is_excess(const struct bbr_loss *loss, double lost, double all, bool sure)
{
    double packets = all / loss->mtu, random = loss->share * packets;
    double margin = sure ? EXCESS_PACKETS * (1 + sqrt(random)) : EXCESS_QUEUE * sqrt(random);
    return lost / loss->mtu > random + EXCESS_LOSS * packets + margin;
}

static bool is_excess(const struct bbr_loss *loss, const struct bbr_loss_sample *sample)
{
    return bbr_loss_is_excess(loss, sample->lost, sample->arrived + sample->lost, true);
}

/* ---- the policer ---- */

static void set_max(struct bbr_loss *loss, double max_bps, uint64_t rounds, lh_time now)
{
    loss->max_bps = max_bps;
    loss->max_round = rounds;
    loss->max_ns = now;
}

/* Of what it drops none is lost at random: where some is, the test may have erred. */
static bool is_pure(const struct bbr_loss *loss)
{
    return loss->policed_bps > 0 && loss->tested <= LOSS_UNTESTED;
}

static void set_policed(struct bbr_loss *loss, double bps, uint64_t rounds, lh_time now)
{
    if (bps > POLICED_SAME * loss->probed_bps || POLICED_LESS * bps < loss->probed_bps)
        loss->longer = 1;
    loss->policed_bps = bps;
    loss->step = is_pure(loss) ? POLICED_STEP : POLICED_STEP_MAX;
    set_max(loss, bps, rounds, now);
}

bool bbr_loss_is_policed(const struct bbr_loss *loss)
{
    return loss->max_bps > 0 && loss->max_bps == loss->policed_bps;
}

void bbr_loss_on_round(struct bbr_loss *loss, uint64_t rounds, lh_time now)
{
    double longer = bbr_loss_is_policed(loss) ? loss->longer : 1;
    if (loss->max_bps == 0 || (double)(rounds - loss->max_round) < longer * POLICED_ROUNDS ||
        (double)(now - loss->max_ns) < longer * POLICED_NS)
        return;
    if (bbr_loss_is_policed(loss)) {
        loss->probed_bps = loss->policed_bps;
        loss->longer = fmin(2 * loss->longer, POLICED_LONGER);
    }
    double max_bps = loss->step * loss->max_bps;
    loss->step = fmin(1 + POLICED_STEPS * (loss->step - 1), POLICED_STEP_MAX);
    if (max_bps >= POLICED_GONE * loss->policed_bps)
        max_bps = loss->policed_bps = loss->probed_bps = 0;
    set_max(loss, max_bps, rounds, now);
}

/* ---- samples ---- */

static void add_sample(const struct bbr_loss *loss, struct bbr_loss_sample *to,
                       const struct bbr_loss_sample *round)
{
    double keep = packets_of(loss, to) > LOSS_SAMPLE ? 0.5 : 1;
    to->arrived = keep * to->arrived + round->arrived;
    to->lost = keep * to->lost + round->lost;
    to->timed = keep * to->timed + round->timed;
    to->ns = keep * to->ns + round->ns;
}

static enum bbr_loss_found start_test(struct bbr_loss *loss, const struct bbr_loss_sample *round,
                                      double bps)
{
    bool says = packets_of(loss, round) >= LOSS_PACKETS && round->ns > 0;
    double delivered = delivered_bps(says ? round : &loss->cruised);
    if (bbr_loss_is_policed(loss)) /* in one round trip a host may have been late */
        delivered = fmax(delivered, delivered_bps(&loss->cruised));
    loss->test_bps = fmin(bps, delivered > 0 ? delivered : bps * (1 - share_of(&loss->cruised)));
    loss->test = (struct bbr_loss_sample){0};
    return BBR_LOSS_UNKNOWN;
}

/* The policer that was found drops packets: its rate was taken for a little too high, since its bucket was
 * not empty at first, or was probed. */
static bool is_above_policed(const struct bbr_loss *loss, double bps)
{
    bool known = is_pure(loss) && POLICED_LESS * bps > loss->policed_bps;
    bool slightly = packets_of(loss, &loss->cruised) >= POLICED_PACKETS &&
                    share_of(&loss->cruised) > loss->share + POLICED_LOSS;
    bool far = is_excess(loss, &loss->cruised);
    return known && (far ? loss->lowered == 0 : slightly && loss->lowered < POLICED_LOWERED);
}

/* Without a test, which costs half of the rate; but not again and again, since random loss may have begun. */
static void lower_policed(struct bbr_loss *loss, double bps, uint64_t rounds, lh_time now)
{
    set_policed(loss, bps * (1 - (share_of(&loss->cruised) - loss->share)), rounds, now);
    loss->lowered += is_excess(loss, &loss->cruised) ? POLICED_LOWERED : 1;
    loss->cruised = (struct bbr_loss_sample){0};
}

/* Less is lost than is made up for, and that fills a queue: only a test tells. */
static bool is_doubtful(const struct bbr_loss *loss, uint64_t rounds)
{
    return loss->share > LOSS_UNTESTED && rounds > loss->test_round + TEST_RENEW;
}

enum bbr_loss_found bbr_loss_on_cruise(struct bbr_loss *loss, const struct bbr_loss_sample *round,
                                       bool queue, double bps, uint64_t rounds, lh_time now)
{
    if (queue && is_doubtful(loss, rounds))
        loss->cruised = *round;
    else if (queue)
        return BBR_LOSS_NOTHING;
    else
        add_sample(loss, &loss->cruised, round);
    if (packets_of(loss, &loss->cruised) < LOSS_PACKETS)
        return BBR_LOSS_NOTHING;
    if (queue)
        return start_test(loss, round, bps);
    if (is_above_policed(loss, bps)) {
        lower_policed(loss, bps, rounds, now);
        return BBR_LOSS_POLICED;
    }
    double max = fmax(LOSS_UNTESTED, TEST_RISE * loss->tested);
    if (is_pure(loss)) /* what is more is the policer's */
        max = loss->share;
    loss->share += (fmin(fmin(share_of(&loss->cruised), max), SHARE_MAX) - loss->share) / 8;
    if (packets_of(loss, &loss->cruised) > LOSS_SAMPLE && loss->tested > LOSS_UNTESTED)
        loss->tested = loss->share;
    bool due = is_excess(loss, &loss->cruised) && rounds > loss->test_round + TEST_AGAIN;
    return due ? start_test(loss, round, bps) : BBR_LOSS_NOTHING;
}

enum bbr_loss_found bbr_loss_on_test(struct bbr_loss *loss, const struct bbr_loss_sample *round, bool last,
                                     bool queue, double bps, uint64_t rounds, lh_time now)
{
    loss->test.arrived += round->arrived;
    loss->test.lost += round->lost;
    double packets = packets_of(loss, &loss->test);
    double before = share_of(&loss->cruised), lower = share_of(&loss->test);
    bool enough = packets >= LOSS_PACKETS && packets * fmax(before, LOSS_UNTESTED) >= TEST_LOST;
    bool same = lower > TEST_OWN * before;
    if (!enough && !last)
        return BBR_LOSS_NOTHING;
    loss->test_round = rounds;
    loss->lowered = 0;
    if (!enough && packets * before < TEST_LOST / 4.0) {
        loss->cruised = (struct bbr_loss_sample){0};
        return BBR_LOSS_END;
    }
    if (rounds < loss->doubted_until && bps < DOUBTED_BPS * loss->doubted_bps &&
        lower > TEST_OWN * loss->doubted_share) {
        loss->doubted_until = 0; /* less was sent, and as much is lost */
        loss->restored_bps = loss->doubted_rose ? 0 : loss->doubted_bps;
    }
    bool random = same && (rounds >= loss->doubted_until || lower < DOUBTED_LOSS);
    if (random) { /* both are samples of the same */
        const struct bbr_loss_sample both = {.arrived = loss->test.arrived + loss->cruised.arrived,
                                             .lost = loss->test.lost + loss->cruised.lost};
        lower = share_of(&both);
    } else if (same) {
        lower = DOUBTED_LOSS;
    }
    loss->share = loss->tested = fmin(lower, SHARE_MAX);
    loss->cruised = (struct bbr_loss_sample){0};
    if (random) {
        set_max(loss, 0, rounds, now);
        loss->policed_bps = loss->probed_bps = 0;
        return BBR_LOSS_RANDOM;
    }
    if (queue) /* of this flow: no policer */
        return BBR_LOSS_QUEUE;
    set_policed(loss, fmin(bps, loss->test_bps), rounds, now);
    return BBR_LOSS_POLICED;
}

void bbr_loss_on_limit(struct bbr_loss *loss, bool queue, double bps, uint64_t rounds)
{
    bool rose = loss->lowest_round != 0 && loss->share > 2 * loss->lowest + LOSS_UNTESTED;
    loss->limits = queue ? 0 : loss->limits + 1;
    if (loss->limits < (rose ? LIMITS : LIMITS_ALWAYS))
        return;
    loss->limits = 0;
    loss->doubted_until = rounds + DOUBTED_ROUNDS;
    loss->doubted_share = loss->share;
    loss->doubted_bps = bps;
    loss->doubted_rose = rose;
    loss->share = loss->tested = fmin(loss->share, DOUBTED_LOSS);
}

double bbr_loss_take_restored(struct bbr_loss *loss)
{
    double bps = loss->restored_bps;
    loss->restored_bps = 0;
    return bps;
}

static void note_lowest(struct bbr_loss *loss, double arrived, double lost, uint64_t rounds)
{
    loss->recent.arrived += arrived;
    loss->recent.lost += lost;
    if (packets_of(loss, &loss->recent) < LOWEST_PACKETS)
        return;
    double share = share_of(&loss->recent);
    bool old = loss->lowest_round == 0 || rounds > loss->lowest_round + LOWEST_ROUNDS;
    if (old || share < loss->lowest) {
        loss->lowest = share;
        loss->lowest_round = rounds;
    }
    loss->recent = (struct bbr_loss_sample){0};
}

void bbr_loss_end_round(struct bbr_loss *loss, double arrived, double lost, uint64_t rounds)
{
    note_lowest(loss, arrived, lost, rounds);
    loss->earlier.arrived = arrived + loss->earlier.arrived / 2;
    loss->earlier.lost = lost + loss->earlier.lost / 2;
}

double bbr_loss_lately(const struct bbr_loss *loss, double arrived, double lost)
{
    const struct bbr_loss_sample all = {.arrived = arrived + loss->earlier.arrived,
                                        .lost = lost + loss->earlier.lost};
    return share_of(&all);
}

bool bbr_loss_is_stall(const struct bbr_loss *loss, double arrived, double lost)
{
    return bbr_loss_lately(loss, arrived, lost) > loss->share + STALL_LOST * (1 - loss->share);
}

double bbr_loss_growth(const struct bbr_loss *loss, double shown, double packets)
{
    double deviation = sqrt(loss->share / (1 - loss->share) / fmax(packets, 1));
    double more = fmax(UP_LOSSY * (shown - 1) - UP_DEVIATIONS * deviation, UP_MIN * (shown - 1));
    return 1 + more;
}

double bbr_loss_cohort_bps(const struct bbr_loss *loss, const struct bbr_cohort *cohort)
{
    double packets = cohort->bytes / loss->mtu, random = loss->share * packets;
    double lost = (cohort->bytes - cohort->arrived_bytes) / loss->mtu;
    bool excess = lost > random + UP_DEVIATIONS * sqrt(random);
    return excess ? bbr_cohort_delivered_bps(cohort)
                  : cohort_bps(cohort, (1 - loss->share) * cohort->bytes);
}

double bbr_loss_delivered_bps(const struct bbr_loss *loss)
{
    return packets_of(loss, &loss->cruised) >= DELIVERED_PACKETS ? delivered_bps(&loss->cruised) : 0;
}

double bbr_loss_believed(const struct bbr_loss *loss, double bps)
{
    return loss->max_bps > 0 ? fmin(bps, loss->max_bps) : bps;
}

uint64_t bbr_loss_burst_bytes(const struct bbr_loss *loss, double bps)
{
    return loss->policed_bps > 0 ? (uint64_t)fmin(bps * POLICED_BURST_NS / 8e9, POLICED_BURST) : 0;
}

double bbr_loss_test_bps(const struct bbr_loss *loss)
{
    return TEST_GAIN * loss->test_bps;
}

enum bbr_loss_found bbr_loss_on_up(struct bbr_loss *loss, const struct bbr_loss_sample *round, double bps,
                                   uint64_t rounds, lh_time now)
{
    struct bbr_loss_sample all = *round;
    if (loss->share > LOSS_UNTESTED) { /* reports are lost, too, and the next ones tell more */
        all.arrived += loss->earlier.arrived;
        all.lost += loss->earlier.lost;
    }
    if (round->ns <= 0 || packets_of(loss, round) < LOSS_PACKETS / 2.0 || !is_excess(loss, &all))
        return BBR_LOSS_NOTHING;
    loss->lowered = 0;
    set_policed(loss, fmin(bps, delivered_bps(round)), rounds, now);
    return BBR_LOSS_POLICED;
}

/* ---- up --------------------------------------------------------------------------------------------- */

#define UP_PACKETS 32
#define UP_SENT    0.5  /* of what is on top; less left: it says nothing */
#define UP_NOTHING 0.25 /* of it: less is none */

void bbr_up_start(struct bbr_up *up, double bw, double gain, double ns, lh_time now)
{
    *up = (struct bbr_up){.bw = bw, .gain = gain, .ns = ns};
    bbr_cohort_start(&up->cohort, (double)now, (double)now + ns);
}

struct bbr_up_result bbr_up_by_cohort(const struct bbr_up *up, const struct bbr_loss *loss)
{
    double sent = bbr_cohort_sent_bps(&up->cohort) * (1 - BBR_MADE_UP * loss->share);
    double packets = up->cohort.bytes / loss->mtu;
    return (struct bbr_up_result){.bps = fmin(bbr_loss_cohort_bps(loss, &up->cohort), up->gain * up->bw),
                                  .shown = up->gain,
                                  .packets = packets,
                                  .tells = packets >= UP_PACKETS &&
                                           sent > (1 + UP_SENT * (up->gain - 1)) * up->bw};
}

struct bbr_up_result bbr_up_by_rates(const struct bbr_up *up, double bps, double rtt_ns, double packets)
{
    return (struct bbr_up_result){.bps = bps,
                                  .shown = 1 + (up->gain - 1) * fmin(up->ns / rtt_ns, 1),
                                  .packets = packets,
                                  .tells = up->full};
}

bool bbr_up_is_more(const struct bbr_up *up, const struct bbr_up_result *result)
{
    return result->bps > (1 + UP_NOTHING * (result->shown - 1)) * up->bw;
}

double bbr_up_queue_ns(const struct bbr_up *up, double min_ns, double max_ns)
{
    return fmin(fmax(UP_NOTHING * (up->gain - 1) * up->ns, min_ns), max_ns);
}
