/*
 * connect.h - connects the channels of an endpoint to those of the peer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_CONNECT_H
#define LH_FABRIC_UDP_CONNECT_H

#include "fabric/udp/udp.h"

int udp_endpoint_connect(struct fabric_endpoint *endpoint, const struct qp_info_endpoint *peer);

#endif
