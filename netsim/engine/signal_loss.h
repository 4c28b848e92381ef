/*
 * signal_loss.h - what becomes of pauses, resumes and credits on a long link: each may be lost, and in an
 * outage all are. Data is not touched.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_SIGNAL_LOSS_H
#define LH_NETSIM_ENGINE_SIGNAL_LOSS_H

#include "base/link_fate.h"
#include "netsim/base/config.h"

/* Of one direction of a link. */
struct netsim_signal_loss {
    struct lh_link_state link; /* which draws */
    netsim_time mute_from_ps;
    netsim_time mute_until_ps;
};

/* Whether signals can be lost at all. */
bool netsim_signals_suffer(const struct netsim_long_config *config);
/* 0; -LH_EINVAL, -LH_ERANGE with key, value and remedy. */
int netsim_signal_loss_check(const struct netsim_long_config *config);

/* The configuration has passed netsim_signal_loss_check(). */
void netsim_signal_loss_init(struct netsim_signal_loss *loss, const struct netsim_long_config *config,
                             uint64_t seed);
/* The fate of a signal that sets out now; one draw for each. */
bool netsim_signal_is_lost(struct netsim_signal_loss *loss, netsim_time now_ps);

#endif
