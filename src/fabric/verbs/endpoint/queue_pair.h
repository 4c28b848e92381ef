/*
 * queue_pair.h - UC queue pairs: creation, and their states.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_QUEUE_PAIR_H
#define LH_FABRIC_VERBS_QUEUE_PAIR_H

#include "fabric/verbs/endpoint/endpoint.h"

/* From RESET to INIT. -LH_EDEVICE */
int verbs_qp_init(const struct verbs_fabric *fabric, struct ibv_qp *qp);
/* A UC queue pair with those queues and sizes, in INIT: it takes receives. -LH_EDEVICE */
int verbs_qp_create(struct verbs_endpoint *endpoint, struct ibv_qp_init_attr *attr, struct ibv_qp **qp);
/* From here on it neither sends nor takes anything. From any thread. */
void verbs_qp_stop(struct ibv_qp *qp);
/* To RTS, with that peer. -LH_EADDR when there is no way to it, -LH_EDEVICE. */
int verbs_qp_connect(struct verbs_fabric *fabric, struct ibv_qp *qp, const union ibv_gid *peer,
                     uint32_t peer_qpn);

#endif
