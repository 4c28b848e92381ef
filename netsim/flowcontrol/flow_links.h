/*
 * signalling.h - events of a link under flow control: what its far end then signals to its near end, and how
 * that reacts.
 *
 * Pauses, resumes and credits are packets of 64 bytes. They go before all else, behind the packet that is on
 * the wire.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FLOWCONTROL_SIGNALLING_H
#define LH_NETSIM_FLOWCONTROL_SIGNALLING_H

#include "netsim/flowcontrol/flow_control.h"

/* A packet of the data's priority has come by the link and is in the switch, or has left it. */
void netsim_signalling_on_arrival(struct netsim_flow_control *control, uint32_t link,
                                  const struct netsim_packet *packet);
void netsim_signalling_on_departure(struct netsim_flow_control *control, uint32_t link,
                                    const struct netsim_packet *packet);
/* The switch at its far end did not take a packet. */
void netsim_signalling_on_refused(struct netsim_flow_control *control, uint32_t link,
                                  const struct netsim_packet *packet);
/* A pause, resume or credit came by the link. */
void netsim_signalling_on_signal(struct netsim_flow_control *control, uint32_t link,
                                 const struct netsim_packet *signal);
/* An event from first_slot_event on. */
void netsim_signalling_on_event(struct netsim_flow_control *control, uint32_t event);
/* A packet that carries a signal, and counts it. NETSIM_NO_PACKET: the pool has none. */
uint32_t netsim_signalling_packet(struct netsim_flow_control *control, enum lh_netsim_kind kind,
                                  uint64_t value);

#endif
