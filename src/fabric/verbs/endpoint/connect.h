/*
 * connect.h - connects every queue pair to one of the peer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_CONNECT_H
#define LH_FABRIC_VERBS_CONNECT_H

#include "fabric/verbs/endpoint/endpoint.h"

int verbs_endpoint_connect(struct fabric_endpoint *endpoint, const struct qp_info_endpoint *peer);

#endif
