/*
 * flow_links.h - events of a link under flow control, and reactions of both ends: Bifrost, credits, pauses,
 * refresh timers.
 *
 * Pauses, resumes and credits are packets of 64 bytes. They go before all else, behind the packet that is on
 * the wire.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FLOWCONTROL_FLOW_LINKS_H
#define LH_NETSIM_FLOWCONTROL_FLOW_LINKS_H

#include "netsim/flowcontrol/flow_machines.h"

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

/* ---- bifrost link ---------------------------------------------------------------------------------- */

/*
 * A long link under Bifrost: slots at its far end, pauses and a guard at its near end.
 *
 * Timers of each: its slot, at whole multiples of the slot's length, as long as packets arrive or fewer are
 * expected than the link can carry; the next part of a pause; and at its near end the end of a pause, and the
 * end of what a guard allows without a frame. A guarded link has a frame in each slot, always; while it is at
 * rest and its near end is not silent, these would change nothing, and are left out.
 */

/* Data arrived; number: of the long link. */
void netsim_bifrost_on_arrival(struct netsim_flow_control *control, uint32_t number, uint32_t bytes);
/* A pause or resume arrived at the near end. */
void netsim_bifrost_on_frame(struct netsim_flow_control *control, uint32_t port,
                             const struct netsim_packet *frame);
/* Events count from first_slot_event. */
void netsim_bifrost_on_event(struct netsim_flow_control *control, uint32_t event);

/* ---- credit link ----------------------------------------------------------------------------------- */

/* A link under credits: what its far end announces, and what its near end may send. */

void netsim_credits_on_arrival(struct netsim_flow_control *control, uint32_t link,
                               const struct netsim_packet *packet);
void netsim_credits_on_departure(struct netsim_flow_control *control, uint32_t link,
                                 const struct netsim_packet *packet);
/* A packet was lost on the link: its credit comes back. */
void netsim_credits_on_lost(struct netsim_flow_control *control, uint32_t link,
                            const struct netsim_packet *packet);

/* At the near end: a packet leaves, or a limit arrived. */
void netsim_credits_on_sent(struct netsim_flow_control *control, uint32_t port,
                            const struct netsim_packet *packet);
void netsim_credits_on_limit(struct netsim_flow_control *control, uint32_t port, uint64_t limit);

/* ---- pause link ------------------------------------------------------------------------------------ */

/*
 * A link under PFC, or to a relay of SWING: it is paused by the queue at its far end, or by
 * what pauses the relay.
 */

/* The bytes of the link that wait at its far end have changed. */
void netsim_pfc_update(struct netsim_flow_control *control, uint32_t link);
void netsim_relay_update(struct netsim_flow_control *control, uint32_t link);

/* At the near end: a pause or resume arrived, or a pause has ended by itself. */
void netsim_pause_on_frame(struct netsim_flow_control *control, uint32_t port,
                           const struct netsim_packet *frame);
void netsim_pause_on_expired(struct netsim_flow_control *control, uint32_t port);

/* ---- refresh timers -------------------------------------------------------------------------------- */

/*
 * Signals that are refreshed as long as they hold: pauses that end by themselves, and
 * limits of credit.
 *
 * Two timers a link: at its far end, when what was signalled is due again, as long as it holds; at its near
 * end, the end of a pause, which the next pause or a resume cancels. A link that is not paused has none.
 */

/* The quanta of pauses on that link; NETSIM_HOLD: they last until the resume. */
uint64_t netsim_refresh_quanta(const struct netsim_flow_control *control, uint32_t link);
/* A pause or limit was signalled, and is to be refreshed from now on; or not any more. */
void netsim_refresh_begin(struct netsim_flow_control *control, uint32_t link);
void netsim_refresh_end(struct netsim_flow_control *control, uint32_t link);
/* The refresh of the link is due. */
void netsim_refresh_on_expired(struct netsim_flow_control *control, uint32_t link);
/* A pause of that many quanta arrived, or a resume (0): the pause before it is over. */
void netsim_refresh_on_pause(struct netsim_flow_control *control, uint32_t port, uint64_t quanta);

#endif
