/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/fabric.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <longhaul/device.h>
#include <longhaul/stats.h>
#include <longhaul/types.h>

#include "base/error.h"
#include "wire/qp_info.h"
#include "wire/roce_packet.h"

/* ---- devices --------------------------------------------------------------------------------------- */

#define FIRST_ROOM 16u

struct lh_device *fabric_device_add(struct fabric_device_list *list, const char *fabric)
{
    if (list->count == list->room) {
        size_t room = list->room == 0 ? FIRST_ROOM : 2 * list->room;
        struct lh_device *more = realloc(list->devices, room * sizeof *more);
        if (more == NULL) {
            list->failed = true;
            return NULL;
        }
        list->devices = more;
        list->room = room;
    }
    struct lh_device *device = &list->devices[list->count++];
    *device = (struct lh_device){0};
    snprintf(device->fabric, sizeof device->fabric, "%s", fabric);
    return device;
}

/* ---- endpoint check -------------------------------------------------------------------------------- */

int endpoint_check_shape(const struct fabric_endpoint_attr *attr)
{
    if (attr->channels < 1 || attr->channels > QP_INFO_CHANNELS_MAX)
        return lh_fail(LH_ERANGE, "%u channels: out of range (1 to %u)", attr->channels,
                       QP_INFO_CHANNELS_MAX);
    if (attr->generations < 1 || attr->generations > QP_INFO_GENERATIONS_MAX)
        return lh_fail(LH_ERANGE, "%u generations: out of range (1 to %u)", attr->generations,
                       QP_INFO_GENERATIONS_MAX);
    if (attr->stripe_packets < 1)
        return lh_fail(LH_EINVAL, "stripe of 0 packets: out of range (at least 1)");
    if (attr->stats == NULL)
        return lh_fail(LH_EINVAL, "endpoint without counters");
    return 0;
}

int endpoint_check_table(const struct fabric_endpoint_attr *attr)
{
    const struct immediate_split *split = &attr->split;
    if (split->message_bits + split->offset_bits + split->fragment_bits != 32 || split->message_bits > 16 ||
        split->offset_bits > 31 || split->fragment_bits == 0)
        return lh_fail(LH_EINVAL, "immediate split %u+%u+%u: invalid (the bits must add up to 32)",
                       split->message_bits, split->offset_bits, split->fragment_bits);
    if (attr->slots < 1 || attr->slots > 1u << split->message_bits)
        return lh_fail(LH_ERANGE, "%u message slots: out of range for %u bits of the immediate (1 to %u)",
                       attr->slots, split->message_bits, 1u << split->message_bits);
    uint64_t longest = (uint64_t)attr->mtu_bytes << split->offset_bits;
    if (attr->slot_bytes < 1 || attr->slot_bytes > longest)
        return lh_fail(
            LH_ERANGE, "messages of %llu bytes: out of range for %u bits of the immediate (1 to %llu)",
            (unsigned long long)attr->slot_bytes, split->offset_bits, (unsigned long long)longest);
    return 0;
}

int endpoint_check_peer(const struct fabric_endpoint_attr *attr, const struct qp_info_endpoint *peer)
{
    if (peer->channels != attr->channels)
        return lh_fail(LH_EHANDSHAKE,
                       "channel count mismatch: peer %u, this side %u (use the same on both)",
                       peer->channels, attr->channels);
    if (peer->generations != attr->generations)
        return lh_fail(LH_EHANDSHAKE,
                       "generation count mismatch: peer %u, this side %u (use the same on both)",
                       peer->generations, attr->generations);
    return 0;
}

struct fabric_peer_traits endpoint_peer_traits(const struct qp_info_endpoint *peer)
{
    bool sockets = peer->fabric == QP_INFO_UDP;
    return (struct fabric_peer_traits){
        .may_be_translated = sockets, .shares_control_port = sockets, .drops_unread = sockets};
}

static bool qpn_is_valid(uint32_t qpn)
{
    return qpn != 0 && qpn <= ROCE_QPN_MASK;
}

bool endpoint_check_qpns(const struct qp_info_endpoint *peer)
{
    bool valid = qpn_is_valid(peer->control_qpn);
    for (uint32_t channel = 0; channel < peer->channels; channel++)
        for (uint32_t generation = 0; generation < peer->generations; generation++)
            valid = valid && qpn_is_valid(peer->qpn[generation][channel]);
    return valid;
}

/* ---- random ---------------------------------------------------------------------------------------- */

int fabric_random(void *out, size_t bytes)
{
    uint8_t *next = out;
    while (bytes > 0) { /* each round gets at least a byte */
        ssize_t got = getrandom(next, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return lh_fail(LH_ESYSTEM, "no random numbers from the kernel: %s", strerror(errno));
        next += got;
        bytes -= (size_t)got;
    }
    return 0;
}

/* ---- socket drops ---------------------------------------------------------------------------------- */

uint32_t socket_drops(int fd)
{
    uint32_t counters[SK_MEMINFO_VARS] = {0};
    socklen_t bytes = sizeof counters;
    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, counters, &bytes) != 0)
        return 0;
    return bytes >= (SK_MEMINFO_DROPS + 1) * sizeof counters[0] ? counters[SK_MEMINFO_DROPS] : 0;
}
