/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "fabric/endpoint_check.h"
#include "fabric/verbs/device/device.h"
#include "fabric/verbs/device_list.h"
#include "fabric/verbs/endpoint/connect.h"
#include "fabric/verbs/endpoint/control.h"
#include "fabric/verbs/endpoint/endpoint.h"
#include "fabric/verbs/endpoint/protect.h"
#include "fabric/verbs/endpoint/rx.h"
#include "fabric/verbs/endpoint/tx.h"

static void close_verbs(struct fabric *base)
{
    struct verbs_fabric *fabric = (struct verbs_fabric *)base;
    if (fabric->pd != NULL) {
        verbs_memory_close(&fabric->memory);
        ibv_dealloc_pd(fabric->pd);
    }
    if (fabric->context != NULL)
        ibv_close_device(fabric->context);
    pthread_mutex_destroy(&fabric->lock);
    free(fabric);
}

static int open_verbs(const struct fabric_attr *attr, struct fabric **out)
{
    struct verbs_fabric *fabric = calloc(1, sizeof *fabric);
    if (fabric == NULL)
        return lh_fail(LH_ENOMEM, "no memory for a fabric");
    fabric->base.ops = &fabric_verbs_ops;
    pthread_mutex_init(&fabric->lock, NULL);
    int error = verbs_name_parse(attr->address, &fabric->name);
    if (error == 0)
        error = verbs_device_open(fabric);
    if (error == 0) {
        fabric->pd = ibv_alloc_pd(fabric->context);
        if (fabric->pd == NULL)
            error = lh_fail(LH_EDEVICE, "device %s cannot make a protection domain: %s",
                            ibv_get_device_name(fabric->context->device), strerror(errno));
    }
    if (error != 0) {
        close_verbs(&fabric->base);
        return error;
    }
    bool windows = (fabric->device.device_cap_flags & IBV_DEVICE_MEM_WINDOW) != 0 &&
                   fabric->name.protection != VERBS_PROTECT_MR &&
                   fabric->name.protection != VERBS_PROTECT_INDIRECT;
    verbs_memory_open(&fabric->memory, fabric->pd, windows);
    *out = &fabric->base;
    return 0;
}

static lh_time now(struct fabric *fabric)
{
    (void)fabric;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (lh_time)time.tv_sec * LH_NS_PER_S + (lh_time)time.tv_nsec;
}

static int memory_register(struct fabric *base, void *address, size_t bytes, uint32_t *lkey, void **handle)
{
    struct verbs_region *region;
    int error = verbs_memory_add(&((struct verbs_fabric *)base)->memory, address, bytes, &region);
    if (error != 0)
        return error;
    *lkey = region->mr != NULL ? region->mr->lkey : 0;
    *handle = region;
    return 0;
}

static void memory_deregister(struct fabric *base, void *handle)
{
    verbs_memory_remove(&((struct verbs_fabric *)base)->memory, handle);
}

static uint32_t mtu(struct fabric *base)
{
    return ((const struct verbs_fabric *)base)->mtu_bytes;
}

static uint32_t poll_fds(struct fabric_endpoint *base, uint32_t channel, int *fds)
{
    const struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    if (channel != FABRIC_CONTROL) {
        fds[0] = endpoint->channels[channel]->cqs.recv.events->fd;
        fds[1] = endpoint->channels[channel]->cqs.send.events->fd;
        return 2;
    }
    fds[0] = endpoint->control.cqs.recv.events->fd;
    fds[1] = verbs_fabric_of(endpoint)->context->async_fd;
    return 2;
}

const struct fabric_ops fabric_verbs_ops = {
    .name = "verbs",
    .devices = verbs_devices,
    .open = open_verbs,
    .close = close_verbs,
    .now = now,
    .mtu = mtu,
    .endpoint_create = verbs_endpoint_create,
    .endpoint_destroy = verbs_endpoint_destroy,
    .endpoint_info = verbs_endpoint_info,
    .endpoint_connect = verbs_endpoint_connect,
    .peer_traits = endpoint_peer_traits,
    .slot_bind = verbs_slot_bind,
    .slot_unbind = verbs_slot_unbind,
    .post_writes = verbs_post_writes,
    .released = verbs_released,
    .poll = verbs_poll,
    .control_send = verbs_control_send,
    .control_poll = verbs_control_poll,
    .memory_register = memory_register,
    .memory_deregister = memory_deregister,
    .poll_fds = poll_fds,
};
