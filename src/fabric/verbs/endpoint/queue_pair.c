/*
 * queue_pair.c - UC queue pairs: made, and brought to where they send and receive.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/verbs/endpoint/queue_pair.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

#define HOP_LIMIT 64u

static const char *device_of(const struct verbs_fabric *fabric)
{
    return ibv_get_device_name(fabric->context->device);
}

int verbs_qp_init(const struct verbs_fabric *fabric, struct ibv_qp *qp)
{
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT,
        .port_num = fabric->port,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
    };
    int error =
        ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error != 0)
        return lh_fail(LH_EDEVICE, "device %s cannot use a queue pair on port %u: %s", device_of(fabric),
                       fabric->port, strerror(error));
    return 0;
}

int verbs_qp_create(struct verbs_endpoint *endpoint, struct ibv_qp_init_attr *attr, struct ibv_qp **out)
{
    struct verbs_fabric *fabric = verbs_fabric_of(endpoint);
    attr->qp_type = IBV_QPT_UC;
    attr->qp_context = endpoint;
    struct ibv_qp *qp = ibv_create_qp(fabric->pd, attr);
    if (qp == NULL)
        return lh_fail(LH_EDEVICE, "device %s cannot make a UC queue pair (%u sends, %u receives): %s",
                       device_of(fabric), attr->cap.max_send_wr, attr->cap.max_recv_wr, strerror(errno));
    int error = verbs_qp_init(fabric, qp);
    if (error != 0) {
        ibv_destroy_qp(qp);
        return error;
    }
    *out = qp;
    return 0;
}

void verbs_qp_stop(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    if (qp != NULL)
        ibv_modify_qp(qp, &attr, IBV_QP_STATE); /* of a device that is gone it cannot be, and need not */
}

/* The kernel resolves the peer's link address in here, and returns ETIMEDOUT when the first try was not
 * answered yet. */
static int ready_to_receive(struct verbs_fabric *fabric, struct ibv_qp *qp, const union ibv_gid *peer,
                            uint32_t peer_qpn)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = fabric->path_mtu,
        .dest_qp_num = peer_qpn,
        .ah_attr =
            {
                .grh = {.dgid = *peer, .sgid_index = fabric->gid_index, .hop_limit = HOP_LIMIT},
                .is_global = 1,
                .port_num = fabric->port,
            },
    };
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    int error = ETIMEDOUT;
    for (uint32_t i = 0; i < VERBS_ROUTE_TRIES && error == ETIMEDOUT; i++)
        error = ibv_modify_qp(qp, &attr, mask);
    return error;
}

int verbs_qp_connect(struct verbs_fabric *fabric, struct ibv_qp *qp, const union ibv_gid *peer,
                     uint32_t peer_qpn)
{
    int error = ready_to_receive(fabric, qp, peer, peer_qpn);
    if (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH)
        return lh_fail(LH_EADDR,
                       "device %s: no route to the peer: %s (check that this host can ping it from the "
                       "address of GID %u)",
                       device_of(fabric), strerror(error), fabric->gid_index);
    if (error == 0) {
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
        error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    }
    if (error != 0)
        return lh_fail(LH_EDEVICE, "device %s cannot connect a queue pair: %s", device_of(fabric),
                       strerror(error));
    return 0;
}
