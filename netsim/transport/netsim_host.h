/*
 * sender.h - the sending end of a flow: a window, and one of three ways to retransmit.
 *
 * Selective repeat (sr), as IRN does it (Mittal et al. 2018, section 3): a packet counts as lost when one
 * that is `reorder` later has arrived. The sender then recovers: it retransmits each gap once, and sends new
 * packets when there is none. Recovery ends when everything that had been sent at its beginning has arrived.
 * What is lost twice is found by the timer.
 *
 * irn is the same with IRN's own settings: any later packet shows a loss, and there are two fixed
 * timeouts, the low one for few packets in flight, when no later packet may show one.
 *
 * Go-back-N (gbn): the receiver takes packets in order only. When it reports a gap, or the timer fires, all
 * from the gap on is retransmitted.
 *
 * Timer: one a flow, which runs while an acknowledgement is missing. It counts from when the oldest
 * packet left, or from the last acknowledgement; it is not moved on each of these, but when it fires early,
 * set again for the rest. While nothing is in flight there is no timer: a flow whose host is stopped for
 * ever lets the simulation end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TRANSPORT_SENDER_H
#define LH_NETSIM_TRANSPORT_SENDER_H

#include "netsim/transport/transport.h"

bool netsim_sender_may_send(const struct netsim_transport *transport, uint32_t flow);
/* Fills in the packet that goes next. */
void netsim_sender_fill(struct netsim_transport *transport, uint32_t flow, struct netsim_packet *packet);
void netsim_sender_start(struct netsim_transport *transport, uint32_t flow);

/* True, of these: the flow has joined the ring of its host, which may send. */
bool netsim_sender_on_ack(struct netsim_transport *transport, const struct netsim_packet *ack);
bool netsim_sender_on_timer_expired(struct netsim_transport *transport, uint32_t flow);
bool netsim_sender_on_controller_timer(struct netsim_transport *transport, uint32_t flow);
bool netsim_sender_on_pace_expired(struct netsim_transport *transport, uint32_t flow);
/* The flow has sent all that it may: the next message of its queue pair may be next. */
bool netsim_sender_wake_next(struct netsim_transport *transport, uint32_t flow);

#endif
