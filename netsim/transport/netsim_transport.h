/*
 * netsim_transport.h - the transports of simulated hosts: queue pairs, senders, receivers, XP.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TRANSPORT_NETSIM_TRANSPORT_H
#define LH_NETSIM_TRANSPORT_NETSIM_TRANSPORT_H

#include "netsim/transport/netsim_flows.h"

/* ---- queue pair ------------------------------------------------------------------------------------ */

/*
 * Flows from one host to another as messages of one queue pair, of sr, irn and gbn
 * (transport.queue_pair = peer).
 *
 * Its packets are one sequence, message after message, in the order of their start: they take one path and
 * leave in that order, and the window counts from the oldest that is not acknowledged to the newest,
 * whichever messages these are of. A message has come for its receiver, and is done for its sender, when
 * all before it are, too. With go-back-N the receiver takes none of a later message before that and
 * reports the gap in front of it, and the sender goes back through all of them; else a packet of a later
 * message that arrives shows what is missing of those before it.
 *
 * Otherwise (transport.queue_pair = flow) each flow is the only message of its own, and these calls find so.
 */

#define NETSIM_PAIRS_HOSTS_MAX 4096u /* the table of pairs is their square */

/* ---- the sender -------------------------------------------------------------------------------------- */

/* Puts a flow that starts behind the others. */
void netsim_queue_pair_add(struct netsim_transport *transport, uint32_t flow);
/* Whether its messages before the flow are sent, and the window has room for another packet. */
bool netsim_queue_pair_has_room(const struct netsim_transport *transport, uint32_t flow);
/* Whether so many packets at most are in flight, of the flow and those behind it. */
bool netsim_queue_pair_has_few(const struct netsim_transport *transport, uint32_t flow, uint32_t packets);
/* The first message, from the flow on, of which something is still to be sent; NETSIM_NO_FLOW: none. */
uint32_t netsim_queue_pair_unsent(const struct netsim_transport *transport, uint32_t flow);
/* Go-back-N: what follows the flow is to be sent again. */
void netsim_queue_pair_go_back(struct netsim_transport *transport, uint32_t flow);
/* The flow is acknowledged, or has failed: it and those behind it may be done. */
void netsim_queue_pair_on_acknowledged(struct netsim_transport *transport, uint32_t flow);

/* ---- the receiver ------------------------------------------------------------------------------------ */

/* The first message up to the flow that has not come whole; the flow itself if all before it have. */
uint32_t netsim_queue_pair_missing(const struct netsim_transport *transport, uint32_t flow);
/* All packets of the flow have arrived, or it has failed: it and those behind it may have come. */
void netsim_queue_pair_on_whole(struct netsim_transport *transport, uint32_t flow);

/* ---- xp -------------------------------------------------------------------------------------------- */

/*
 * Flows as messages of XP (docs/fabrics.md): each packet is sent once, none is acknowledged, and a message
 * ends with what has come.
 *
 * All flows from one host to another are messages of one queue pair, in the order of their start. The sender
 * sends one after the other. For the receiver a message ends at its last packet, at the first packet of a
 * later one (preemption), or at its deadline, which counts from its start or the end of the one before,
 * whichever is later. A sender that is not done at the deadline sends no more of it.
 */

/* Whether the flow may send now; else it will when the one before it is sent. */
bool netsim_xp_start(struct netsim_transport *transport, uint32_t flow);
/* The flow has sent its last packet. */
void netsim_xp_on_sent(struct netsim_transport *transport, uint32_t flow);
/* A packet of the flow arrived: ends those before it. False: it is late, its flow has ended. */
bool netsim_xp_on_arrival(struct netsim_transport *transport, uint32_t flow);
/* The flow's last packet arrived. */
void netsim_xp_on_last(struct netsim_transport *transport, uint32_t flow);
/* Whether the flow's host may send another one. */
bool netsim_xp_on_deadline_expired(struct netsim_transport *transport, uint32_t flow);

#endif
