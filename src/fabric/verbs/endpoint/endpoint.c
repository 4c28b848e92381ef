/*
 * Creation and end of an endpoint.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/verbs/endpoint/endpoint.h"

#include <stdlib.h>

#include "base/error.h"
#include "fabric/endpoint_check.h"
#include "fabric/random.h"
#include "fabric/verbs/endpoint/channel.h"
#include "fabric/verbs/endpoint/control.h"
#include "fabric/verbs/endpoint/failure.h"
#include "fabric/verbs/endpoint/protect.h"
#include "fabric/verbs/pure/gid.h"
#include "wire/roce.h"

static int check_mtu(const struct verbs_fabric *fabric, uint32_t mtu_bytes)
{
    if (mtu_bytes < ROCE_MTU_MIN)
        return lh_fail(LH_EMTU, "MTU of %u bytes: RDMA devices take %u and more", mtu_bytes, ROCE_MTU_MIN);
    if (mtu_bytes > fabric->mtu_bytes)
        return lh_fail(
            LH_EMTU,
            "an MTU of %u bytes: port %u of device %s sends RoCE packets of at most %u; use that "
            "(--mtu %u), or raise the MTU of its network interface",
            mtu_bytes, fabric->port, ibv_get_device_name(fabric->context->device), fabric->mtu_bytes,
            fabric->mtu_bytes);
    return 0;
}

static int choose_sizes(const struct verbs_fabric *fabric, struct verbs_endpoint *endpoint)
{
    const struct verbs_limits limits = {
        .max_qp_wr = (uint32_t)fabric->device.max_qp_wr,
        .max_srq = (uint32_t)fabric->device.max_srq,
        .max_srq_wr = (uint32_t)fabric->device.max_srq_wr,
        .max_cqe = (uint32_t)fabric->device.max_cqe,
    };
    const struct fabric_endpoint_attr *attr = &endpoint->attr;
    return verbs_sizes_choose(&limits, attr->channels, attr->generations, attr->mtu_bytes,
                              fabric->name.own_queues, &endpoint->sizes);
}

static int make_channels(struct verbs_endpoint *endpoint)
{
    endpoint->channels = calloc(endpoint->attr.channels, sizeof(struct verbs_channel *));
    if (endpoint->channels == NULL)
        return lh_fail(LH_ENOMEM, "no memory for %u channels", endpoint->attr.channels);
    int error = 0;
    for (uint32_t i = 0; i < endpoint->attr.channels && error == 0; i++)
        error = verbs_channel_create(endpoint, i, &endpoint->channels[i]);
    return error;
}

int verbs_endpoint_create(struct fabric *base, const struct fabric_endpoint_attr *attr,
                          struct fabric_endpoint **out)
{
    struct verbs_fabric *fabric = (struct verbs_fabric *)base;
    int error = endpoint_check_shape(attr);
    if (error == 0)
        error = check_mtu(fabric, attr->mtu_bytes);
    if (error == 0)
        error = endpoint_check_table(attr);
    if (error != 0)
        return error;
    struct verbs_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (endpoint == NULL)
        return lh_fail(LH_ENOMEM, "no memory for an endpoint");
    endpoint->base.fabric = base;
    endpoint->attr = *attr;
    endpoint->wire_overhead =
        verbs_gid_family(fabric->gid.raw) == 4 ? ROCE_WRITE_IMM_OVERHEAD_V4 : ROCE_WRITE_IMM_OVERHEAD_V6;
    error = verbs_endpoint_check(endpoint);
    if (error == 0)
        error = fabric_random(&endpoint->base.secret, sizeof endpoint->base.secret);
    if (error == 0)
        error = choose_sizes(fabric, endpoint);
    if (error == 0)
        error = make_channels(endpoint);
    if (error == 0)
        error = verbs_control_open(endpoint);
    if (error == 0)
        error = verbs_protect_open(endpoint);
    if (error != 0) {
        verbs_endpoint_destroy(&endpoint->base);
        return error;
    }
    *out = &endpoint->base;
    return 0;
}

void verbs_endpoint_destroy(struct fabric_endpoint *base)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    struct verbs_fabric *fabric = verbs_fabric_of(endpoint);
    int whole = 0;
    if (endpoint->control.cqs.send.cq != NULL)
        verbs_control_flush(endpoint);
    /* Another endpoint's worker may be reading an event of ours; later ones find that it is over. */
    pthread_mutex_lock(&fabric->lock);
    atomic_compare_exchange_strong(&endpoint->broken, &whole, 2);
    pthread_mutex_unlock(&fabric->lock);
    for (uint32_t i = 0; endpoint->channels != NULL && i < endpoint->attr.channels; i++)
        verbs_channel_destroy(endpoint->channels[i]);
    free(endpoint->channels);
    verbs_control_close(endpoint);
    verbs_protect_close(endpoint);
    free(endpoint);
}

void verbs_endpoint_info(struct fabric_endpoint *base, struct qp_info_endpoint *info)
{
    const struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    const struct verbs_fabric *fabric = verbs_fabric_of(endpoint);
    const struct fabric_endpoint_attr *attr = &endpoint->attr;
    *info = (struct qp_info_endpoint){
        .fabric = QP_INFO_VERBS,
        .family = (uint8_t)verbs_gid_family(fabric->gid.raw),
        .channels = (uint8_t)attr->channels,
        .generations = (uint8_t)attr->generations,
        .control_qpn = endpoint->control.qp->qp_num,
        .control_port = ROCE_UDP_PORT,
        /* Packets that find no receive posted are lost, as with a full socket buffer. */
        .receive_buffer_bytes = (uint64_t)endpoint->sizes.recv_depth * attr->mtu_bytes,
    };
    verbs_gid_to_address(fabric->gid.raw, info->address);
    for (uint32_t channel = 0; channel < attr->channels; channel++) {
        info->channel_port[channel] = ROCE_UDP_PORT;
        for (uint32_t generation = 0; generation < attr->generations; generation++)
            info->qpn[generation][channel] = endpoint->channels[channel]->qp[generation]->qp_num;
    }
}
