/*
 * flow_control.h - the flow control of all links of a network.
 *
 * What happens to a link comes in (signalling.h); what is to be done goes out as `effects`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FLOWCONTROL_FLOW_CONTROL_H
#define LH_NETSIM_FLOWCONTROL_FLOW_CONTROL_H

#include <longhaul/flowcontrol.h>

#include "netsim/engine/network.h"
#include "netsim/flowcontrol/effects.h"

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
    bool rests;           /* no frames are sent, and none is missed */
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
    uint32_t first_refresh_event; /* two of each link, see refresh_timers.h; only when refreshing */
    uint32_t frame_bytes;         /* a full packet on the wire */
};

/* How long a pause of that many quanta, of one frame, lasts at that port. */
static inline netsim_time netsim_quanta_ps(const struct netsim_port *port, uint64_t quanta)
{
    assert(quanta <= LH_PFC_QUANTA_MAX); /* with the rest 39 bits */
    return port->ps_per_byte_q16 * (quanta * LH_PFC_QUANTUM_BYTES) >> 16;
}

#endif
