/*
 * pause_link.h - a link under PFC, or to a relay of SWING: it is paused by the queue at its far end, or by
 * what pauses the relay.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FLOWCONTROL_PAUSE_LINK_H
#define LH_NETSIM_FLOWCONTROL_PAUSE_LINK_H

#include "netsim/flowcontrol/flow_control.h"

/* The bytes of the link that wait at its far end have changed. */
void netsim_pfc_update(struct netsim_flow_control *control, uint32_t link);
void netsim_relay_update(struct netsim_flow_control *control, uint32_t link);

/* At the near end: a pause or resume arrived, or a pause has ended by itself. */
void netsim_pause_on_frame(struct netsim_flow_control *control, uint32_t port,
                           const struct netsim_packet *frame);
void netsim_pause_on_expired(struct netsim_flow_control *control, uint32_t port);

#endif
