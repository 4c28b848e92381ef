/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/engine/netsim_port.h"

#include <assert.h>

#include <longhaul/flowcontrol.h>
#include <longhaul/netsim.h>
#include <longhaul/units.h>

#include "base/error.h"
#include "base/link_spec.h"
#include "netsim/base/netsim_config.h"
#include "netsim/base/netsim_time.h"

/* ---- packet ---------------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct netsim_packet) == 64, "one cache line");

/* ---- drift ----------------------------------------------------------------------------------------- */

static const char *show(netsim_time span_ps, char *out, size_t size)
{
    return lh_format_time((double)span_ps / (double)NETSIM_PS_PER_S, out, size);
}

int netsim_drift_check(netsim_time max_ps, netsim_time period_ps)
{
    char period[LH_FORMAT_MAX];
    char maximum[LH_FORMAT_MAX];
    char minimum[LH_FORMAT_MAX];
    if (max_ps == 0 || period_ps / 2 > max_ps)
        return 0;
    return lh_fail(LH_EINVAL,
                   "long.drift_period %s: in half of it the delay falls by long.drift, %s, and packets "
                   "would be reordered (set more than %s)",
                   show(period_ps, period, sizeof period), show(max_ps, maximum, sizeof maximum),
                   show(2 * max_ps, minimum, sizeof minimum));
}

void netsim_drift_init(struct netsim_drift *drift, netsim_time max_ps, netsim_time period_ps)
{
    assert(netsim_drift_check(max_ps, period_ps) == 0);
    drift->half_ps = max_ps == 0 ? 1 : period_ps / 2;
    drift->slope = (double)max_ps / (double)drift->half_ps;
}

/* A double holds the picoseconds of the longest period, which is an hour. */
netsim_time netsim_drift_max(const struct netsim_drift *drift)
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

/* ---- signal loss ----------------------------------------------------------------------------------- */

#define LOSS_MAX 0.9

bool netsim_signals_suffer(const struct netsim_long_config *config)
{
    return config->signal_loss > 0 || config->mute_for_ps != 0;
}

int netsim_signal_loss_check(const struct netsim_long_config *config)
{
    double burst = config->signal_burst;
    if (config->signal_loss > LOSS_MAX)
        return lh_fail(LH_ERANGE,
                       "long.signal_loss %g: out of range (at most %g; for an outage set long.mute_for)",
                       config->signal_loss, LOSS_MAX);
    /* 0 stands for 1 where the keys were never set. */
    if (config->signal_loss > 0 && burst > 0 && burst < 1)
        return lh_fail(LH_ERANGE,
                       "long.signal_burst %g: out of range (mean burst length, at least 1 signal)", burst);
    if (burst > 1 && config->signal_loss > burst / (burst + 1))
        return lh_fail(LH_EINVAL,
                       "long.signal_loss %g: with long.signal_burst = %g at most %g, since a signal passes "
                       "between two bursts (lower it, or lengthen the bursts)",
                       config->signal_loss, burst, burst / (burst + 1));
    return 0;
}

void netsim_signal_loss_init(struct netsim_signal_loss *loss, const struct netsim_long_config *config,
                             uint64_t seed)
{
    const struct lh_link_spec spec = {
        .loss = config->signal_loss, .burst_packets = config->signal_burst, .seed = seed};
    lh_link_state_init(&loss->link, &spec, 0);
    loss->mute_from_ps = config->mute_from_ps;
    loss->mute_until_ps = config->mute_from_ps + config->mute_for_ps;
}

bool netsim_signal_is_lost(struct netsim_signal_loss *loss, netsim_time now_ps)
{
    struct lh_link_fate fate = lh_link_decide(&loss->link, now_ps / NETSIM_PS_PER_NS, LH_PFC_FRAME_BYTES);
    return fate.dropped || (now_ps >= loss->mute_from_ps && now_ps < loss->mute_until_ps);
}

/* ---- port ------------------------------------------------------------------------------------------ */

_Static_assert(sizeof(struct netsim_port) == 320, "five cache lines");
