/*
 * drift.c - see drift.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/engine/drift.h"

#include <assert.h>

#include <longhaul/units.h>

#include "base/error.h"

static const char *show(netsim_time span_ps, char *out, size_t size)
{
    return lh_format_time((double)span_ps / (double)NETSIM_PS_PER_S, out, size);
}

int netsim_drift_check(netsim_time most_ps, netsim_time period_ps)
{
    char period[LH_FORMAT_MAX];
    char most[LH_FORMAT_MAX];
    char least[LH_FORMAT_MAX];
    if (most_ps == 0 || period_ps / 2 > most_ps)
        return 0;
    return lh_fail(LH_EINVAL,
                   "long.drift_period %s: in half of it the delay falls by long.drift, %s, and packets "
                   "would be reordered (set more than %s)",
                   show(period_ps, period, sizeof period), show(most_ps, most, sizeof most),
                   show(2 * most_ps, least, sizeof least));
}

void netsim_drift_init(struct netsim_drift *drift, netsim_time most_ps, netsim_time period_ps)
{
    assert(netsim_drift_check(most_ps, period_ps) == 0);
    drift->half_ps = most_ps == 0 ? 1 : period_ps / 2;
    drift->slope = (double)most_ps / (double)drift->half_ps;
}

/* A double holds the picoseconds of the longest period, which is an hour. */
netsim_time netsim_drift_most(const struct netsim_drift *drift)
{
    return (netsim_time)((double)drift->half_ps * drift->slope);
}

netsim_time netsim_drift_at(const struct netsim_drift *drift, netsim_time at_ps)
{
    netsim_time phase_ps = at_ps % (2 * drift->half_ps);
    if (phase_ps > drift->half_ps)
        phase_ps = 2 * drift->half_ps - phase_ps;
    return (netsim_time)((double)phase_ps * drift->slope);
}
