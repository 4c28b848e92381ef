/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/verbs_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fabric/fabric.h"
#include "fabric/verbs/verbs_queue_pair.h"
#include "fabric/verbs/verbs_sizes.h"
#include "wire/roce_packet.h"

/* ---- channel --------------------------------------------------------------------------------------- */

/*
 * Creation and end of a channel: its queue pairs, posted receives, memory for borrowed payload.
 *
 * Creation and end of a channel: its queue pairs, the receives that are posted, memory for borrowed payload.
 */

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

static int verbs_channel_create(struct verbs_endpoint *endpoint, uint32_t index, struct verbs_channel **out)
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

static void verbs_channel_destroy(struct verbs_channel *channel)
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

/* ---- protect --------------------------------------------------------------------------------------- */

/*
 * Late packets: what comes for a receive that is over must not change a byte of its buffer
 * (paper section 3.3). The device must refuse it, by itself, from the moment that slot_unbind returns.
 *
 *   window  a memory window of type 1 for each slot, bound to the buffer for each receive and to nothing at
 *           its end; each bind gives another key. Microseconds.
 *   mr      a registration for each receive, taken back at its end. Works everywhere, and costs what
 *           pinning pages costs.
 *   indirect  an indirect key of mlx5 for each slot and generation, pointed at the buffer, and at
 *           its end at the null key (verbs_indirect_mlx5.c). Only when it is asked for: unproven.
 *
 * What a device cannot refuse is that a packet of an earlier receive is still reported (its completion
 * waits): the SDR layer recognises it by the generation of its queue pair.
 */

/* Of 256 keys of a window. A repeated one would let a packet in that is late by that number of receives. */
#define WINDOW_BINDS_MAX 250u

static int open_windows(struct verbs_endpoint *endpoint)
{
    const struct verbs_fabric *fabric = verbs_fabric_of(endpoint);
    if (!fabric->memory.windows)
        return lh_fail(LH_EDEVICE, "device %s has no memory windows of type 1; use protect=mr",
                       ibv_get_device_name(fabric->context->device));
    int error = verbs_binder_open(endpoint);
    if (error != 0)
        verbs_binder_close(&endpoint->binder);
    return error;
}

/* Chooses what the device has, or what the name asks for: then -LH_EDEVICE when it has not. */
static int verbs_protect_open(struct verbs_endpoint *endpoint)
{
    enum verbs_protection wanted = verbs_fabric_of(endpoint)->name.protection;
    endpoint->guards = calloc(endpoint->attr.slots, sizeof *endpoint->guards);
    if (endpoint->guards == NULL)
        return lh_fail(LH_ENOMEM, "no memory for %u message slots", endpoint->attr.slots);
    if (wanted == VERBS_PROTECT_INDIRECT) {
        endpoint->protection = VERBS_PROTECT_INDIRECT;
        return verbs_indirect_open(endpoint);
    }
    endpoint->protection = VERBS_PROTECT_MR;
    if (wanted == VERBS_PROTECT_MR)
        return 0;
    int error = open_windows(endpoint);
    if (error == 0)
        endpoint->protection = VERBS_PROTECT_WINDOW;
    return wanted == VERBS_PROTECT_ANY ? 0 : error;
}

static void verbs_protect_close(struct verbs_endpoint *endpoint)
{
    for (uint32_t i = 0; endpoint->guards != NULL && i < endpoint->attr.slots; i++) {
        if (endpoint->guards[i].window != NULL)
            ibv_dealloc_mw(endpoint->guards[i].window);
        if (endpoint->guards[i].mr != NULL)
            ibv_dereg_mr(endpoint->guards[i].mr);
    }
    free(endpoint->guards);
    verbs_binder_close(&endpoint->binder);
    verbs_indirect_close(endpoint->indirect);
}

static int bind_window(struct verbs_endpoint *endpoint, struct verbs_guard *guard,
                       const struct fabric_slot *what, struct ibv_mr *mr, struct fabric_slot_key *key)
{
    if (guard->window == NULL)
        guard->window = ibv_alloc_mw(verbs_fabric_of(endpoint)->pd, IBV_MW_TYPE_1);
    if (guard->window == NULL)
        return lh_fail(LH_EDEVICE, "the device has no memory window left: %s", strerror(errno));
    key->base = (uint64_t)(uintptr_t)what->base;
    guard->binds++;
    int error = verbs_binder_bind(&endpoint->binder, guard->window, mr, key->base, what->length_bytes);
    key->rkey = guard->window->rkey;
    return error;
}

static int bind_registration(struct verbs_endpoint *endpoint, struct verbs_guard *guard,
                             const struct fabric_slot *what, struct fabric_slot_key *key)
{
    guard->mr = ibv_reg_mr(verbs_fabric_of(endpoint)->pd, what->base, what->length_bytes,
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (guard->mr == NULL)
        return lh_fail(LH_EDEVICE, "the device cannot register a receive of %llu bytes: %s",
                       (unsigned long long)what->length_bytes, strerror(errno));
    key->base = (uint64_t)(uintptr_t)what->base;
    key->rkey = guard->mr->rkey;
    return 0;
}

/* What came for an earlier receive of this slot and generation must have been read: it would count for this
 * one. With polls that find an end now and then it has been, long ago. */
static void forget_earlier(struct verbs_endpoint *endpoint, const struct verbs_guard *guard,
                           uint8_t generation)
{
    for (uint32_t i = 0; i < endpoint->attr.channels; i++)
        if (endpoint->channels[i]->drained < guard->ended[generation])
            verbs_drain(endpoint->channels[i]);
}

static int bind_slot(struct verbs_endpoint *endpoint, uint32_t slot, const struct fabric_slot *what,
                     struct ibv_mr *mr, struct fabric_slot_key *key)
{
    struct verbs_guard *guard = &endpoint->guards[slot];
    switch (endpoint->protection) {
    case VERBS_PROTECT_INDIRECT:
        return verbs_indirect_bind(endpoint->indirect, slot, what, mr, key);
    case VERBS_PROTECT_WINDOW:
        return bind_window(endpoint, guard, what, mr, key);
    default:
        return bind_registration(endpoint, guard, what, key);
    }
}

int verbs_slot_bind(struct fabric_endpoint *base, uint32_t slot, const struct fabric_slot *what,
                    struct fabric_slot_key *key)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    struct verbs_guard *guard = &endpoint->guards[slot];
    assert(slot < endpoint->attr.slots && !guard->bound);
    int error = verbs_endpoint_check(endpoint);
    if (error != 0)
        return error;
    forget_earlier(endpoint, guard, what->generation);
    error = verbs_endpoint_check(endpoint);
    if (error != 0)
        return error;
    guard->generation = what->generation;
    /* An empty receive has no memory; packets for it are empty, and devices do not check their key. */
    *key = (struct fabric_slot_key){0};
    if (what->length_bytes == 0)
        return 0;
    const struct verbs_region *region = verbs_memory_find(&verbs_fabric_of(endpoint)->memory, what->lkey);
    if (region == NULL || !region->writable)
        return lh_fail(LH_EKEY, "lkey %u: memory %s", what->lkey,
                       region == NULL ? "not registered with the device" : "not writable");
    error = bind_slot(endpoint, slot, what, region->mr, key);
    guard->bound = error == 0;
    return error;
}

void verbs_slot_unbind(struct fabric_endpoint *base, uint32_t slot)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    struct verbs_guard *guard = &endpoint->guards[slot];
    guard->ended[guard->generation] = ++endpoint->binds;
    if (!guard->bound)
        return;
    guard->bound = false;
    int error = 0;
    if (guard->mr != NULL) {
        error = ibv_dereg_mr(guard->mr);
        guard->mr = NULL;
    } else if (endpoint->protection == VERBS_PROTECT_INDIRECT) {
        error = verbs_indirect_unbind(endpoint->indirect, slot);
    } else if (guard->binds >= WINDOW_BINDS_MAX) {
        error = ibv_dealloc_mw(guard->window); /* the next receive makes another, which has other keys */
        guard->window = NULL;
        guard->binds = 0;
    } else {
        guard->binds++;
        error = verbs_binder_bind(&endpoint->binder, guard->window, NULL, 0, 0);
    }
    /* A buffer that packets may still enter must not be used: the endpoint is over, and with it its keys.
     */
    if (error != 0)
        verbs_endpoint_fail(endpoint, "slot %u cannot be closed to late packets", slot);
}

/* ---- endpoint -------------------------------------------------------------------------------------- */

/* Creation and end of an endpoint. */

static int check_mtu(const struct verbs_fabric *fabric, uint32_t mtu_bytes)
{
    if (mtu_bytes < ROCE_MTU_MIN)
        return lh_fail(LH_EMTU, "MTU of %u bytes: RDMA devices take %u and more", mtu_bytes, ROCE_MTU_MIN);
    if (mtu_bytes != roce_mtu_for(mtu_bytes) && mtu_bytes < fabric->mtu_bytes)
        return lh_fail(LH_EMTU, "MTU of %u bytes: RDMA devices take powers of two (use --mtu %u)",
                       mtu_bytes, roce_mtu_for(mtu_bytes));
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
