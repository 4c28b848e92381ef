/*
 * xdp_fabric.h - device "xdp:eth0": the udp fabric with AF_XDP sockets for its data packets.
 *
 * The fabric is the one of UDP sockets on an address of the interface, with a bypass (udp_bypass.h): the
 * interface's XDP program redirects datagrams to the fabric's data ports, and to its address, into AF_XDP
 * sockets, one a receive queue; data packets to hosts behind the interface leave by these sockets. All else,
 * control datagrams and data of other interfaces, of this host and of RoCE hardware, takes the UDP sockets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_XDP_XDP_FABRIC_H
#define LH_FABRIC_XDP_XDP_FABRIC_H

#include "fabric/fabric.h"

/* For the registry: opens and lists devices. What it opens has the operations of fabric_udp_ops. */
extern const struct fabric_ops fabric_xdp_ops;

#endif
