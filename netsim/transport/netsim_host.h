/*
 * netsim_host.h - a host: its flows share one port, which asks for a packet when it is idle; its sender, and
 * ideal completion times.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TRANSPORT_NETSIM_HOST_H
#define LH_NETSIM_TRANSPORT_NETSIM_HOST_H

#include "netsim/transport/netsim_flows.h"

/* The packet that the host's flows, round robin, send now; NETSIM_NO_PACKET. */
uint32_t netsim_host_packet(struct netsim_transport *transport, uint32_t host);

enum netsim_host_action {
    NETSIM_HOST_TAKES,   /* the packet has ended */
    NETSIM_HOST_SENDS,   /* the same, and a flow of the host may send */
    NETSIM_HOST_ANSWERS, /* the packet has become its acknowledgement, to be queued at the host's port */
};

/* A packet of a flow arrived at its destination. */
enum netsim_host_action netsim_host_on_arrival(struct netsim_transport *transport,
                                               struct netsim_packet *packet);

/* ---- sender ---------------------------------------------------------------------------------------- */

/*
 * The sending end of a flow: a window, and one of three ways to retransmit.
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
 */

void netsim_sender_start(struct netsim_transport *transport, uint32_t flow);
bool netsim_sender_on_timer_expired(struct netsim_transport *transport, uint32_t flow);
bool netsim_sender_on_controller_timer(struct netsim_transport *transport, uint32_t flow);
bool netsim_sender_on_pace_expired(struct netsim_transport *transport, uint32_t flow);

/* ---- ideal fct ------------------------------------------------------------------------------------- */

/*
 * The completion time of a flow that is alone in the network: no queues but its own packets',
 * no faults, no window.
 *
 * Exact, to the picosecond: equal packets through a line of store-and-forward links leave link i spaced by
 * the slowest link so far; only the last packet, which may be shorter, can run into the one before it. Then
 * its acknowledgement can run into that one's.
 */

/* Also the round trip of a full packet on the empty path, and the time of one on its slowest link. */
void netsim_ideal_fct(const struct netsim_transport *transport, uint32_t flow, netsim_time *ideal_ps,
                      netsim_time *base_rtt_ps, netsim_time *slowest_ps);

#endif
