/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/verbs_parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "fabric/fabric.h"
#include "fabric/verbs/verbs_device.h"
#include "fabric/verbs/verbs_queue_pair.h"
#include "fabric/verbs/verbs_sizes.h"
#include "wire/control_messages.h"

/* ---- device list ----------------------------------------------------------------------------------- */

/*
 * Every RDMA device of this machine.
 *
 * Every RDMA device of this machine, its ports, and their addresses that can be used.
 */

#define RATE_UNIT_BPS ((uint64_t)2500000000) /* of one lane, at the lowest speed (InfiniBand: SDR) */
/* Of Linux's RDMA devices in software, which control no congestion (RXE_VENDOR_ID, since Linux 5.10). */
#define SOFTWARE_VENDOR 0xFFFFFFu

/* A port to list. */
struct view {
    struct fabric_device_list *list;
    struct ibv_context *context;
    const struct ibv_device_attr *device;
    struct ibv_port_attr attr;
    const char *name;
    uint8_t port;
};

static void add_unusable(struct fabric_device_list *list, const char *interface, const char *reason)
{
    struct lh_device *device = fabric_device_add(list, "verbs");
    if (device == NULL)
        return;
    snprintf(device->interface, sizeof device->interface, "%s", interface);
    snprintf(device->trouble, sizeof device->trouble, "%s", reason);
}

/* Speeds and widths are bits; the numbers are those of the InfiniBand specification (PortInfo). */
static uint64_t rate_of(const struct ibv_port_attr *attr)
{
    static const uint32_t lanes[] = {1, 4, 8, 12, 2};                    /* of width 1, 2, 4, 8, 16 */
    static const uint32_t units[] = {10, 20, 40, 41, 56, 103, 212, 425}; /* tenths of 2.5 Gbit/s */
    static const uint32_t speeds[] = {1, 2, 4, 8, 16, 32, 64, 128};
    uint64_t width = 0;
    uint64_t speed = 0;
    for (uint32_t i = 0; i < sizeof lanes / sizeof lanes[0]; i++)
        if (attr->active_width == 1u << i)
            width = lanes[i];
    for (uint32_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++)
        if (attr->active_speed == speeds[i])
            speed = units[i];
    return width * speed * RATE_UNIT_BPS / 10;
}

static void add_gid(const struct view *view, const struct verbs_gid *gid)
{
    char text[INET6_ADDRSTRLEN] = "";
    uint8_t address[16];
    bool ipv4 = verbs_gid_family(gid->bytes) == 4;
    verbs_gid_to_address(gid->bytes, address);
    inet_ntop(ipv4 ? AF_INET : AF_INET6, address, text, sizeof text);
    struct lh_device *device = fabric_device_add(view->list, "verbs");
    if (device == NULL)
        return;
    snprintf(device->name, sizeof device->name, "verbs:%s/%u/gid=%u", view->name, view->port, gid->index);
    snprintf(device->interface, sizeof device->interface, "%s/%u", view->name, view->port);
    snprintf(device->address, sizeof device->address, ipv4 ? "%s" : "[%s]", text);
    device->mtu_bytes = verbs_mtu_bytes(view->attr.active_mtu);
    device->rate_bps = rate_of(&view->attr);
    bool windows = (view->device->device_cap_flags & IBV_DEVICE_MEM_WINDOW) != 0;
    snprintf(device->features, sizeof device->features, "%s%s%s", view->device->max_srq > 0 ? "srq " : "",
             windows ? "window mr" : "mr",
             verbs_indirect_possible(view->context->device) ? " indirect(unproven)" : "");
    snprintf(device->congestion, sizeof device->congestion,
             view->device->vendor_id == SOFTWARE_VENDOR ? "none" : "by the device");
    snprintf(device->late_packets, sizeof device->late_packets, "%s",
             verbs_protection_name(windows ? VERBS_PROTECT_WINDOW : VERBS_PROTECT_MR));
}

/* Whether the port can be used at all; else it is listed with the reason. */
static bool check_port(const struct view *view)
{
    char interface[64];
    char reason[192] = "";
    snprintf(interface, sizeof interface, "%s/%u", view->name, view->port);
    uint32_t mtu_bytes = verbs_mtu_bytes(view->attr.active_mtu);
    if (view->attr.link_layer != IBV_LINK_LAYER_ETHERNET)
        snprintf(reason, sizeof reason, "not an Ethernet port (RoCE requires one)");
    else if (view->attr.state != IBV_PORT_ACTIVE)
        snprintf(reason, sizeof reason, "port is %s (check its cable and its network interface)",
                 ibv_port_state_str(view->attr.state));
    else if (mtu_bytes < CONTROL_MESSAGE_MAX)
        snprintf(reason, sizeof reason,
                 "RoCE MTU %u: below the minimum %u (set the MTU of the network interface to 1500)",
                 mtu_bytes, CONTROL_MESSAGE_MAX);
    if (reason[0] != '\0')
        add_unusable(view->list, interface, reason);
    return reason[0] == '\0';
}

/* The one first that is taken when none is named, then the others that are routable. */
static void add_gids(const struct view *view)
{
    struct verbs_gid gids[VERBS_GIDS_MAX];
    uint32_t count = verbs_device_gids(view->context, view->port, gids);
    int best = verbs_gid_choose(gids, count, -1, 0);
    if (best >= 0) {
        add_gid(view, &gids[best]);
        for (uint32_t i = 0; i < count; i++)
            if (i != (uint32_t)best && verbs_gid_rank(&gids[i]) > VERBS_GID_LINK_LOCAL)
                add_gid(view, &gids[i]);
        return;
    }
    char interface[64];
    snprintf(interface, sizeof interface, "%s/%u", view->name, view->port);
    add_unusable(view->list, interface,
                 "no RoCE v2 address (assign an IP address to its network interface)");
}

static void add_ports(struct fabric_device_list *list, struct ibv_context *context)
{
    struct ibv_device_attr device;
    const char *name = ibv_get_device_name(context->device);
    if (ibv_query_device(context, &device) != 0) {
        add_unusable(list, name, "the device does not answer");
        return;
    }
    struct view view = {.list = list, .context = context, .device = &device, .name = name};
    for (uint32_t port = 1; port <= device.phys_port_cnt; port++) {
        view.port = (uint8_t)port;
        if (ibv_query_port(context, view.port, &view.attr) == 0 && check_port(&view))
            add_gids(&view);
    }
}

static int verbs_devices(struct fabric_device_list *list)
{
    int count = 0;
    struct ibv_device **devices = ibv_get_device_list(&count);
    if (devices == NULL || count == 0)
        add_unusable(list, "", VERBS_NO_DEVICE);
    for (int i = 0; devices != NULL && i < count; i++) {
        struct ibv_context *context = ibv_open_device(devices[i]);
        if (context == NULL) {
            char reason[128];
            snprintf(reason, sizeof reason, "cannot open: %s (check this user's access to /dev/infiniband)",
                     strerror(errno));
            add_unusable(list, ibv_get_device_name(devices[i]), reason);
            continue;
        }
        add_ports(list, context);
        ibv_close_device(context);
    }
    if (devices != NULL)
        ibv_free_device_list(devices);
    return 0;
}

/* ---- ops ------------------------------------------------------------------------------------------- */

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
