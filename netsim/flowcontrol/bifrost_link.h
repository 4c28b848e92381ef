/*
 * bifrost_link.h - a long link under Bifrost: slots at its far end, pauses and a guard at its near end.
 *
 * Timers of each: its slot, at whole multiples of the slot's length, as long as packets arrive or fewer are
 * expected than the link can carry; the next part of a pause; and at its near end the end of a pause, and the
 * end of what a guard allows without a frame. A guarded link has a frame in each slot, always; while it is at
 * rest and its near end is not silent, these would change nothing, and are left out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FLOWCONTROL_BIFROST_LINK_H
#define LH_NETSIM_FLOWCONTROL_BIFROST_LINK_H

#include "netsim/flowcontrol/flow_control.h"

/* Data arrived; number: of the long link. */
void netsim_bifrost_on_arrival(struct netsim_flow_control *control, uint32_t number, uint32_t bytes);
/* A pause or resume arrived at the near end. */
void netsim_bifrost_on_frame(struct netsim_flow_control *control, uint32_t port,
                             const struct netsim_packet *frame);
/* Events count from first_slot_event. */
void netsim_bifrost_on_event(struct netsim_flow_control *control, uint32_t event);

#endif
