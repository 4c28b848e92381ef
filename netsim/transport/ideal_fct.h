/*
 * ideal_fct.h - the completion time of a flow that is alone in the network: no queues but its own packets',
 * no faults, no window.
 *
 * Exact, to the picosecond: equal packets through a line of store-and-forward links leave link i spaced by
 * the slowest link so far; only the last packet, which may be shorter, can run into the one before it. Then
 * its acknowledgement can run into that one's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TRANSPORT_IDEAL_FCT_H
#define LH_NETSIM_TRANSPORT_IDEAL_FCT_H

#include "netsim/transport/transport.h"

/* Also the round trip of a full packet on the empty path, and the time of one on its slowest link. */
void netsim_ideal_fct(const struct netsim_transport *transport, uint32_t flow, netsim_time *ideal_ps,
                      netsim_time *base_rtt_ps, netsim_time *slowest_ps);

#endif
