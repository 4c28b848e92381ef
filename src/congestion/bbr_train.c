/*
 * bbr_train.c - see bbr_train.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/bbr_train.h"

#include <math.h>

#include "base/min_max.h"

#define PACKETS_MIN 10
#define GROWTH      4   /* the next is so many times longer; */
#define LONGER_MAX  2   /* so many of these, or of those that the window cut in pieces */
#define LOST        4   /* lost of it, a greater part than this: the path is too narrow for it */
#define DENSE_NS    4e6 /* in less a train that came in pieces was no idle application's */
#define GAP         8   /* part of a round trip: a pause of the sender's, not of the path */

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

/* On a path that is shorter than the time between reports, the window cuts a train in pieces, and a longer one
 * shows no more. Those of an idle application take longer. */
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
    if (believable && !path->is_limit &&
        spacing > BBR_TRAIN_AGREE * rate.bps) { /* the sender's gap is in it */
        rate.bps = spacing;
        rate.is_of_path = true;
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
    if (!believable && !all)
        return unknown;
    if (!believable && !lost && train->longer < LONGER_MAX) {
        next_train(train, path);
        return unknown;
    }
    return evaluate(train, f, path, believable, lost);
}
