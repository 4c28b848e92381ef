/*
 * effects.h - what flow control asks its caller for: signals to send, ports to look after, timers to set.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FLOWCONTROL_EFFECTS_H
#define LH_NETSIM_FLOWCONTROL_EFFECTS_H

#include <assert.h>

#include <longhaul/netsim.h>

#include "netsim/base/time.h"

enum netsim_effect_kind {
    NETSIM_EFFECT_SIGNAL, /* send a pause, resume or credit to the near end of a link */
    NETSIM_EFFECT_KICK,   /* a port may send again */
    NETSIM_EFFECT_TIMER,  /* schedule an event */
};

struct netsim_effect {
    uint64_t value;  /* signal: quanta, or limit of credits; timer: when, in ps */
    uint32_t number; /* of the link, port or event */
    uint8_t kind;    /* enum netsim_effect_kind */
    uint8_t signal;  /* enum lh_netsim_kind */
};

/* A signal of a relay, the end of its pause and a timer for either: no step asks for more. */
#define NETSIM_EFFECTS_MAX 4u

/* To be carried out in this order, before the next step. */
struct netsim_effects {
    uint32_t count;
    struct netsim_effect list[NETSIM_EFFECTS_MAX];
};

static inline void netsim_effect_add(struct netsim_effects *effects, const struct netsim_effect *effect)
{
    assert(effects->count < NETSIM_EFFECTS_MAX);
    effects->list[effects->count++] = *effect;
}

static inline void netsim_effect_signal(struct netsim_effects *effects, uint32_t link,
                                        enum lh_netsim_kind signal, uint64_t value)
{
    netsim_effect_add(effects, &(struct netsim_effect){.value = value,
                                                       .number = link,
                                                       .kind = NETSIM_EFFECT_SIGNAL,
                                                       .signal = (uint8_t)signal});
}

static inline void netsim_effect_kick(struct netsim_effects *effects, uint32_t port)
{
    netsim_effect_add(effects, &(struct netsim_effect){.number = port, .kind = NETSIM_EFFECT_KICK});
}

static inline void netsim_effect_timer(struct netsim_effects *effects, uint32_t event, netsim_time at_ps)
{
    netsim_effect_add(
        effects, &(struct netsim_effect){.value = at_ps, .number = event, .kind = NETSIM_EFFECT_TIMER});
}

#endif
