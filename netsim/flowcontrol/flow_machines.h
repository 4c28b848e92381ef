/*
 * flow_machines.h - state and effects of the flow control of all links of a network.
 *
 * What happens to a link comes in (flow_links.h); what is to be done goes out as `effects`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FLOWCONTROL_FLOW_MACHINES_H
#define LH_NETSIM_FLOWCONTROL_FLOW_MACHINES_H

#include <assert.h>

#include <longhaul/flowcontrol.h>
#include <longhaul/netsim.h>

#include "netsim/base/netsim_time.h"
#include "netsim/engine/network.h"

/* ---- link bytes ------------------------------------------------------------------------------------ */

/* What a link carries in a time, in whole bytes. */

/* Faster than any link, slower than any; longer than any round trip on earth. */
#define FLOW_RATE_MIN ((uint64_t)1000000)
#define FLOW_RATE_MAX ((uint64_t)100000000000000)
#define FLOW_SPAN_MAX ((lh_time)2 * LH_NS_PER_S)

#define FLOW_BIT_NS_PER_BYTE ((uint64_t)8 * LH_NS_PER_S)

/* Rounded up. No step overflows: the rest of the rate is below 8e9, and the span at most 2e9. */
static inline uint64_t flow_bytes_in(uint64_t rate_bps, lh_time span_ns)
{
    assert(rate_bps <= FLOW_RATE_MAX && span_ns <= FLOW_SPAN_MAX);
    uint64_t whole = rate_bps / FLOW_BIT_NS_PER_BYTE * span_ns;
    uint64_t rest = rate_bps % FLOW_BIT_NS_PER_BYTE * span_ns;
    return whole + (rest + FLOW_BIT_NS_PER_BYTE - 1) / FLOW_BIT_NS_PER_BYTE;
}

/* ---- effects --------------------------------------------------------------------------------------- */

/* What flow control asks its caller for: signals to send, ports to look after, timers to set. */

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

/* ---- flow control ---------------------------------------------------------------------------------- */

/* State at the far end of a link under Bifrost, or of one to a relay. */
struct netsim_long_link {
    struct lh_bifrost bifrost;
    struct lh_swing swing;
    uint64_t received_bytes; /* data, since the last slot */
    netsim_time slot_ps;
    uint32_t port;
    /* Bifrost, at the near end of the link. */
    bool paused;          /* by the last frame */
    bool silent;          /* by its guard */
    bool idle;            /* no frames are sent, and none is missed */
    netsim_time guard_ps; /* from a frame on; 0: no guard */
    uint32_t left_quanta; /* of a pause in several frames, for the next */
};

/* Events of a long link. */
enum { NETSIM_LONG_SLOT, NETSIM_LONG_PART, NETSIM_LONG_PAUSE_END, NETSIM_LONG_GUARD, NETSIM_LONG_EVENTS };

struct netsim_credits {
    struct lh_cbfc_sender sender;     /* at the near end of the link */
    struct lh_cbfc_receiver receiver; /* at its far end */
};

struct netsim_flow_control {
    struct netsim_network *network;
    struct netsim_effects effects;
    struct netsim_long_link *long_links;
    struct netsim_credits *credits;    /* of each link; NULL: there are none */
    struct lh_flow_refresh *refreshes; /* of each link; NULL: nothing is refreshed */
    bool refreshing;
    uint8_t priority; /* of the data, which alone is under flow control */
    uint32_t long_links_count;
    uint32_t first_slot_event;    /* NETSIM_LONG_EVENTS of each long link */
    uint32_t first_refresh_event; /* two of each link, see flow_links.h; only when refreshing */
    uint32_t frame_bytes;         /* a full packet on the wire */
};

/* How long a pause of that many quanta, of one frame, lasts at that port. */
static inline netsim_time netsim_quanta_ps(const struct netsim_port *port, uint64_t quanta)
{
    assert(quanta <= LH_PFC_QUANTA_MAX); /* with the rest 39 bits */
    return port->ps_per_byte_q16 * (quanta * LH_PFC_QUANTUM_BYTES) >> 16;
}

#endif
