/*
 * Creation and end of a channel: its queue pairs, the receives that are posted, memory for borrowed payload.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/verbs/endpoint/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fabric/verbs/endpoint/completion.h"
#include "fabric/verbs/endpoint/queue_pair.h"
#include "fabric/verbs/endpoint/rx.h"
#include "wire/roce.h"

#define NOWHERE_BYTES ROCE_MTU_MAX

static int make_shared_queue(struct verbs_channel *channel)
{
    struct verbs_endpoint *endpoint = channel->endpoint;
    const struct verbs_fabric *fabric = verbs_fabric_of(endpoint);
    if (!endpoint->sizes.shared)
        return 0;
    struct ibv_srq_init_attr attr = {
        .srq_context = endpoint,
        .attr = {.max_wr = endpoint->sizes.recv_depth, .max_sge = 1},
    };
    channel->srq = ibv_create_srq(fabric->pd, &attr);
    if (channel->srq == NULL)
        return lh_fail(LH_EDEVICE,
                       "device %s cannot make a shared receive queue of %u: %s; try verbs:%s/srq=no",
                       ibv_get_device_name(fabric->context->device), endpoint->sizes.recv_depth,
                       strerror(errno), ibv_get_device_name(fabric->context->device));
    return 0;
}

static int make_queue_pair(struct verbs_channel *channel, uint32_t generation)
{
    const struct verbs_sizes *sizes = &channel->endpoint->sizes;
    struct ibv_qp_init_attr attr = {
        .send_cq = channel->cqs.send.cq,
        .recv_cq = channel->cqs.recv.cq,
        .srq = channel->srq,
        .cap =
            {
                .max_send_wr = sizes->send_depth,
                .max_recv_wr = channel->srq != NULL ? 0 : sizes->recv_depth,
                .max_send_sge = 1,
                .max_recv_sge = channel->srq != NULL ? 0 : 1,
                .max_inline_data = VERBS_INLINE_BYTES,
            },
    };
    int error = verbs_qp_create(channel->endpoint, &attr, &channel->qp[generation]);
    if (error == 0)
        channel->inline_bytes = attr.cap.max_inline_data;
    return error;
}

static int make_queue_pairs(struct verbs_channel *channel)
{
    const struct verbs_sizes *sizes = &channel->endpoint->sizes;
    for (uint32_t i = 0; i < channel->endpoint->attr.generations; i++) {
        int error = make_queue_pair(channel, i);
        if (error == 0 && (channel->srq == NULL || i == 0))
            error = verbs_post_receives(channel, i, sizes->recv_depth);
        if (error != 0)
            return error;
    }
    return 0;
}

static int make_bounce(struct verbs_channel *channel)
{
    const struct verbs_endpoint *endpoint = channel->endpoint;
    size_t packets = (size_t)endpoint->sizes.send_depth * endpoint->attr.mtu_bytes;
    size_t bytes = packets + NOWHERE_BYTES;
    channel->ring.writes_max = endpoint->sizes.send_depth;
    tx_limit_init(&channel->limit, VERBS_SEND_DEPTH_MIN, channel->ring.writes_max);
    channel->ring.batches = calloc(channel->ring.writes_max, sizeof(struct tx_batch));
    channel->bounce = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
    if (channel->ring.batches == NULL || channel->bounce == NULL)
        return lh_fail(LH_ENOMEM, "no memory for %zu bytes of packets", bytes);
    channel->bounce_mr =
        ibv_reg_mr(verbs_fabric_of(endpoint)->pd, channel->bounce, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (channel->bounce_mr == NULL)
        return lh_fail(LH_ENOMEM,
                       "the device cannot hold %zu bytes of packets in memory (%s): raise the limit of "
                       "locked memory (ulimit -l unlimited)",
                       bytes, strerror(errno));
    channel->nowhere = (struct ibv_sge){(uint64_t)(uintptr_t)(channel->bounce + packets), NOWHERE_BYTES,
                                        channel->bounce_mr->lkey};
    return 0;
}

/* Receives need no memory: a write brings its address along. But a SEND that finds none would stop the queue
 * pair, and anybody can send one. */
static void link_receives(struct verbs_channel *channel)
{
    for (uint32_t i = 0; i < FABRIC_BATCH_MAX; i++)
        channel->receives[i] = (struct ibv_recv_wr){
            .sg_list = &channel->nowhere,
            .num_sge = 1,
            .next = i + 1 < FABRIC_BATCH_MAX ? &channel->receives[i + 1] : NULL,
        };
}

int verbs_channel_create(struct verbs_endpoint *endpoint, uint32_t index, struct verbs_channel **out)
{
    /* Cache lines of its own: another thread works on the next channel. */
    size_t bytes = (sizeof(struct verbs_channel) + 63) & ~(size_t)63;
    struct verbs_channel *channel = aligned_alloc(64, bytes);
    if (channel == NULL)
        return lh_fail(LH_ENOMEM, "no memory for channel %u (%zu bytes)", index, bytes);
    memset(channel, 0, bytes);
    *out = channel; /* from here on the caller destroys it */
    channel->endpoint = endpoint;
    channel->index = index;
    link_receives(channel);
    const struct verbs_sizes *sizes = &endpoint->sizes;
    int error = verbs_cqs_open(endpoint, &channel->cqs, index, sizes->recv_cqe, sizes->send_cqe);
    if (error == 0)
        error = make_bounce(channel);
    if (error == 0)
        error = make_shared_queue(channel);
    return error != 0 ? error : make_queue_pairs(channel);
}

void verbs_channel_destroy(struct verbs_channel *channel)
{
    if (channel == NULL)
        return;
    for (uint32_t i = 0; i < QP_INFO_GENERATIONS_MAX; i++)
        if (channel->qp[i] != NULL)
            ibv_destroy_qp(channel->qp[i]);
    if (channel->srq != NULL)
        ibv_destroy_srq(channel->srq);
    verbs_cqs_close(&channel->cqs);
    if (channel->bounce_mr != NULL)
        ibv_dereg_mr(channel->bounce_mr);
    free(channel->bounce);
    free(channel->ring.batches);
    free(channel);
}
