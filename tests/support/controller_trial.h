/*
 * controller_trial.h - what is asked of each congestion controller, through a bottleneck and with inputs
 * that no path gives.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef TESTS_SUPPORT_CONTROLLER_TRIAL_H
#define TESTS_SUPPORT_CONTROLLER_TRIAL_H

#include <longhaul/congestion.h>

struct trial {
    const struct lh_congestion *controller;
    const char *params;
    uint64_t rate_bps; /* of the bottleneck */
    lh_time rtt_ns;
    double queue; /* in bandwidth-delay products, as all of these */
    double marks; /* longer queues are marked; 0: none */
    double loss;  /* at random */
    uint32_t flows;
    uint32_t stagger; /* round trips between their starts */
    uint32_t rounds;  /* round trips; the second half of them is measured */
    bool told;        /* the flows know the rate */
};

struct trial_result {
    double goodput; /* of the bottleneck's rate, all flows together */
    double jain;    /* index of fairness */
    double delay;   /* mean in the queue, round trips */
    double peak;    /* longest queue, from the start, in bandwidth-delay products */
    double dropped; /* by the queue, of what was sent */
};

struct trial_result trial_run(const struct trial *trial);

/* One path of 2 Gbit/s and 25 ms, one of 100 Gbit/s and 20 us: without loss and with 1 %, goodput of 0.7 and
 * more. */
void trial_paths(const struct lh_congestion *controller, double marks);
/* Two and four flows that start one after the other: Jain's index of 0.9 and more. */
void trial_fairness(const struct lh_congestion *controller, double marks);
/* Feedback without sense, random and at the ends of its ranges: every decision stays within the path's
 * bounds, a packet may always be sent, and a timer that is due does not stay so. */
void trial_hostile(const struct lh_congestion *controller);
/* Texts of parameters: those that are valid, and those that are refused with a reason. NULL
 * ends the lists. */
void trial_texts(const struct lh_congestion *controller, const char *const *valid,
                 const char *const *invalid);

#endif
