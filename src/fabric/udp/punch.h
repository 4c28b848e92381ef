/*
 * punch.h - NAT on the path: packets that show the peer where each channel's data comes from.
 *
 * A peer that is not behind NAT answers to where packets come from. What it sends passes only where something
 * has left by the same socket before, and NAT forgets that after some time: control packets leave each
 * second (pings), data may not. So a punch, an RDMA write of no byte with key 0, leaves each data socket
 * with control packets. Its immediate is what only the peer knows: the token of control messages.
 *
 * Timers: punch_at, from PUNCH_FIRST_NS on at doubling intervals, up to PUNCH_LAST_NS. Its packets leave with
 * the control packet after it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_PUNCH_H
#define LH_FABRIC_UDP_PUNCH_H

#include "fabric/udp/udp.h"

/* See fabric.h. */
void udp_punch(struct fabric_endpoint *endpoint, uint32_t proof);
/* Sends what is due. Of the thread that sends control packets. */
void udp_punch_due(struct udp_endpoint *endpoint);

#endif
