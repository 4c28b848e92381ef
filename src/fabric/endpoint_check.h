/*
 * endpoint_check.h - what every fabric of RoCE packets demands of an endpoint and of its peer, in one place.
 *
 * MTU, addresses and ports are each fabric's own matter.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_ENDPOINT_CHECK_H
#define LH_FABRIC_ENDPOINT_CHECK_H

#include "fabric/fabric.h"

/* Counts of channels and generations, stripe, counters. -LH_ERANGE, -LH_EINVAL. */
int endpoint_check_shape(const struct fabric_endpoint_attr *attr);
/* The message table: that the immediate can name its slots and their packets; the MTU is right. The same
 * errors. */
int endpoint_check_table(const struct fabric_endpoint_attr *attr);
/* That the peer has as many channels and generations. -LH_EHANDSHAKE */
int endpoint_check_peer(const struct fabric_endpoint_attr *attr, const struct qp_info_endpoint *peer);
/* Of a peer over sockets, or with RoCE hardware: of both udp and verbs, which connect to each other. */
struct fabric_peer_traits endpoint_peer_traits(const struct qp_info_endpoint *peer);
/* Whether every queue pair of the peer has a number that can be one. */
bool endpoint_check_qpns(const struct qp_info_endpoint *peer);

#endif
