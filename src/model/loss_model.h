/*
 * loss_runs.h - loss as a path shows it, packet after packet: how much, and how much of it together.
 *
 * Counts what follows what, in the order of sending, and fits the simple Gilbert-Elliott chain that a link
 * text means with loss= and burst= (longhaul/link.h): a good state that loses nothing and a bad one that
 * loses everything. Its two chances have maximum-likelihood estimates that are plain ratios of the counts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_LOSS_RUNS_H
#define LH_MODEL_LOSS_RUNS_H

#include <stdbool.h>
#include <stdint.h>

/* Sums of any number of stretches; all zero is none. Adding two member by member joins them. */
struct model_loss_runs {
    uint64_t packets;
    uint64_t lost;
    uint64_t after_arrived;      /* packets whose predecessor arrived … */
    uint64_t lost_after_arrived; /* … and were lost: a burst begins */
    uint64_t after_lost;
    uint64_t arrived_after_lost; /* a burst ends */
};

/* Where a stretch stands; all zero before its first packet. */
struct model_loss_before {
    bool any, lost;
};

void model_loss_runs_add(struct model_loss_runs *runs, struct model_loss_before *before, bool lost);
void model_loss_runs_join(struct model_loss_runs *runs, const struct model_loss_runs *others);
/* Whether the counts can be of such stretches: what came over a wire is checked with it. */
bool model_loss_runs_possible(const struct model_loss_runs *runs);

/* Low and high: 95 % intervals. That of the loss knows that losses of one burst are not independent. */
struct model_loss_fit {
    double loss, loss_low, loss_high; /* without packets: 0, 0, 1 */
    /* Mean length of a burst, at least 1. Without two neighbours to judge by: 1, 1, and infinity. */
    double burst_packets, burst_low, burst_high;
    bool bursty; /* a packet behind a lost one is lost more often than others, beyond doubt */
};

struct model_loss_fit model_loss_runs_fit(const struct model_loss_runs *runs);
/* The same of a part of what was measured; how losses depend on each other is taken from all of it. A part
 * that met no burst by chance does not know that there are any. */
struct model_loss_fit model_loss_runs_fit_part(const struct model_loss_runs *runs,
                                               const struct model_loss_runs *all);

#endif
