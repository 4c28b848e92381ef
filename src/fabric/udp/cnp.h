/*
 * cnp.h - congestion notification packets (CNP) to RoCE hardware whose packets arrive marked.
 *
 * A peer of our kind needs none: it learns of marks from its own control messages. Hardware with DCQCN lowers
 * its rate when it gets one, and knows no other way (RoCEv2, Annex A17.9.3).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_CNP_H
#define LH_FABRIC_UDP_CNP_H

#include "fabric/udp/udp.h"

/* Least time between two notifications of one queue pair (DCQCN, SIGCOMM 2015, section 5.1: the notification
 * point's timer, N). */
#define UDP_CNP_INTERVAL_NS (50 * LH_NS_PER_US)

/* A packet of the peer, which is hardware, arrived marked: notifies the queue pair that sent it, unless that
 * was done less than UDP_CNP_INTERVAL_NS ago. It may be lost like any packet. */
void udp_cnp_on_marked(struct udp_channel *channel, uint8_t generation);

#endif
