/*
 * deadlock.h - finds that no packet will ever move again, though timers go on.
 *
 * Without signals that are refreshed a deadlock ends the run by itself: no event is left. A pause that is
 * refreshed for ever, or a timeout that recurs behind a port that is paused for ever, goes on. So it is a
 * deadlock when for very many events no port sent a packet of a flow, none is on a wire, and no event is
 * pending that could change that.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_DEADLOCK_H
#define LH_NETSIM_ENGINE_DEADLOCK_H

#include "netsim/engine/network.h"

struct netsim_deadlock {
    uint32_t first_event; /* while one of these events is pending packets may move again */
    uint32_t end_event;
    netsim_time mute_until_ps; /* nor before this */
    netsim_time since_ps;      /* when that was */
    uint64_t events;           /* number of events when a packet of a flow was last seen to have moved */
    uint64_t moves;            /* number of packets that had moved until then */
};

/* To be asked after every few thousand events. */
bool netsim_deadlock_found(struct netsim_deadlock *deadlock, const struct netsim_network *network);

#endif
