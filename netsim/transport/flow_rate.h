/*
 * flow_rate.h - how fast a flow sends: transport.rate, or the rate that DCQCN allows.
 *
 * A flow may send from sender.pace_ps on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TRANSPORT_FLOW_RATE_H
#define LH_NETSIM_TRANSPORT_FLOW_RATE_H

#include "netsim/transport/transport.h"

/* In nanoseconds, rounded down, as dcqcn.h has it. */
struct dcqcn_config netsim_flow_rate_dcqcn(const struct netsim_dcqcn_config *config);
/* Derives what the transport has of rates from its configuration. */
void netsim_flow_rate_setup(struct netsim_transport *transport);

void netsim_flow_rate_start(struct netsim_transport *transport, uint32_t flow);
void netsim_flow_rate_on_sent(struct netsim_transport *transport, uint32_t flow, uint32_t wire_bytes);
/* A congestion notification arrived. */
void netsim_flow_rate_on_cnp(struct netsim_transport *transport, uint32_t flow);

#endif
