/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/udp.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "fabric/endpoint_check.h"
#include "fabric/udp/connect.h"
#include "fabric/udp/demux.h"
#include "fabric/udp/device_list.h"
#include "fabric/udp/endpoint.h"
#include "fabric/udp/port.h"
#include "fabric/udp/punch.h"
#include "fabric/udp/rx.h"
#include "fabric/udp/tx.h"

/* Small receive buffers only cost speed and losses, so this is no error; but the user gets a warning. */
static void warn_of_small_buffer(struct udp_fabric *fabric)
{
    uint64_t asked = fabric->receive_buffer_bytes;
    uint64_t granted = fabric->front.receive_bytes;
    if (granted >= asked)
        return;
    snprintf(fabric->warning, sizeof fabric->warning,
             "receive buffers: %llu bytes requested, %llu granted by the kernel; bursts may be lost "
             "(sysctl -w net.core.rmem_max=%llu)",
             (unsigned long long)asked, (unsigned long long)granted, (unsigned long long)asked);
}

static int open_udp(const struct fabric_attr *attr, struct fabric **made)
{
    union udp_address local;
    int error = udp_address_parse(attr->address, &local);
    if (error != 0)
        return error;
    struct udp_fabric *fabric = calloc(1, sizeof *fabric);
    if (fabric == NULL)
        return lh_fail(LH_ENOMEM, "no memory for a fabric");
    fabric->base.ops = &fabric_udp_ops;
    fabric->local = local;
    fabric->receive_buffer_bytes =
        attr->receive_buffer_bytes != 0 ? attr->receive_buffer_bytes : FABRIC_RECEIVE_BUFFER_DEFAULT;
    if (fabric->receive_buffer_bytes > UDP_SOCKET_BUFFER_MAX)
        fabric->receive_buffer_bytes = UDP_SOCKET_BUFFER_MAX;
    error = udp_socket_open_front(&local, fabric->receive_buffer_bytes, &fabric->front);
    if (error != 0)
        goto free_fabric;
    error = udp_demux_open(fabric);
    if (error != 0)
        goto close_front;
    warn_of_small_buffer(fabric);
    *made = &fabric->base;
    return 0;

close_front:
    udp_socket_close(&fabric->front);
free_fabric:
    free(fabric);
    return error;
}

static void close_udp(struct fabric *fabric)
{
    struct udp_fabric *udp = (struct udp_fabric *)fabric;
    udp_ports_close(udp);
    udp_demux_close(udp);
    udp_socket_close(&udp->front);
    free(udp);
}

static lh_time now(struct fabric *fabric)
{
    (void)fabric;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (lh_time)time.tv_sec * LH_NS_PER_S + (lh_time)time.tv_nsec;
}

static uint32_t poll_fds(struct fabric_endpoint *endpoint, uint32_t channel, int *fds)
{
    const struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    fds[0] =
        channel == FABRIC_CONTROL ? udp_fabric_of(udp)->front.fd : udp_channel_fd(udp->channels[channel]);
    return 1;
}

static lh_time arrived(struct fabric_endpoint *endpoint, uint32_t channel)
{
    int fd;
    poll_fds(endpoint, channel, &fd);
    lh_time ago_ns = udp_socket_ago(fd);
    return ago_ns != 0 ? now(endpoint->fabric) - ago_ns : 0;
}

static const char *warning(struct fabric *fabric)
{
    const struct udp_fabric *udp = (const struct udp_fabric *)fabric;
    return udp->warning[0] != '\0' ? udp->warning : NULL;
}

const struct fabric_ops fabric_udp_ops = {
    .name = "udp",
    .devices = udp_devices,
    .open = open_udp,
    .close = close_udp,
    .now = now,
    .endpoint_create = udp_endpoint_create,
    .endpoint_destroy = udp_endpoint_destroy,
    .endpoint_info = udp_endpoint_info,
    .endpoint_connect = udp_endpoint_connect,
    .peer_traits = endpoint_peer_traits,
    .outruns_path = true,
    .local_is_direct = true,
    .punch = udp_punch,
    .slot_bind = udp_slot_bind,
    .slot_unbind = udp_slot_unbind,
    .slots_rest = udp_slots_rest,
    .post_writes = udp_post_writes,
    .pace = udp_pace,
    .poll = udp_poll,
    .arrived = arrived,
    .bundles_control = true,
    .long_control = true,
    .takes_pieces = udp_takes_pieces,
    .control_send = udp_control_send,
    .control_poll = udp_control_poll,
    .control_proven = udp_control_proven,
    .poll_fds = poll_fds,
    .count_drops = udp_count_drops,
    .warning = warning,
    .shared_poll = udp_shared_poll,
};
