/*
 * drift.h - a cable whose delay changes slowly: warmth makes fibre longer, another route is another length.
 *
 * The delay is shortest at time 0, goes up in a line for half a period, and down again as long: a triangle.
 * What sets out later arrives later, or at the same time: the slope is below 1.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_DRIFT_H
#define LH_NETSIM_ENGINE_DRIFT_H

#include "netsim/base/time.h"

struct netsim_drift {
    netsim_time half_ps; /* of the period */
    double slope;        /* of the delay, per time; 0: it stays as it is */
};

/* The delay grows by up to most_ps (0: it does not drift) within a period. Both have passed
 * netsim_drift_check(). */
void netsim_drift_init(struct netsim_drift *drift, netsim_time most_ps, netsim_time period_ps);

/* -LH_EINVAL, with key and remedy: the delay would fall so fast that packets overtake. */
int netsim_drift_check(netsim_time most_ps, netsim_time period_ps);

/* What the delay of a packet whose last bit sets out then is longer than the shortest, rounded down. */
netsim_time netsim_drift_at(const struct netsim_drift *drift, netsim_time at_ps);

/* The most that is ever added. */
netsim_time netsim_drift_most(const struct netsim_drift *drift);

#endif
