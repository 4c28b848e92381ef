/*
 * signal_loss.c - see signal_loss.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/engine/signal_loss.h"

#include <longhaul/flowcontrol.h>

#include "base/error.h"

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
