/*
 * credit_link.h - a link under credits: what its far end announces, and what its near end may send.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FLOWCONTROL_CREDIT_LINK_H
#define LH_NETSIM_FLOWCONTROL_CREDIT_LINK_H

#include "netsim/flowcontrol/flow_control.h"

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

#endif
