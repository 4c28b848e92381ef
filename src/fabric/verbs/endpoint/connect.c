/*
 * connect.c - learning who the peer is, and connecting every queue pair to one of his.
 *
 * The peer is a device like ours, or the udp fabric. That one must hold the RoCE port, since a device sends
 * to no other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/verbs/endpoint/connect.h"

#include <string.h>

#include "base/error.h"
#include "fabric/endpoint_check.h"
#include "fabric/verbs/endpoint/failure.h"
#include "fabric/verbs/endpoint/queue_pair.h"
#include "fabric/verbs/pure/gid.h"
#include "wire/roce.h"

static int check_identity(const struct verbs_endpoint *endpoint, const struct qp_info_endpoint *peer)
{
    uint32_t family = verbs_gid_family(verbs_fabric_of(endpoint)->gid.raw);
    if (peer->fabric != QP_INFO_UDP && peer->fabric != QP_INFO_VERBS)
        return lh_fail(LH_EHANDSHAKE,
                       "peer fabric %u: unsupported (verbs connects to udp (%u) and verbs (%u))",
                       peer->fabric, QP_INFO_UDP, QP_INFO_VERBS);
    if (peer->family != family)
        return lh_fail(LH_EADDR,
                       "address family mismatch: peer IPv%u, this side IPv%u (open both devices with the "
                       "same family: verbs:DEVICE/ip=%u)",
                       peer->family, family, peer->family);
    int error = endpoint_check_peer(&endpoint->attr, peer);
    if (error != 0)
        return error;
    if (peer->control_port != ROCE_UDP_PORT)
        return lh_fail(
            LH_EADDR,
            "the peer listens on UDP port %u, and RoCE hardware sends to %u only, which another process or "
            "connection of that address holds (ss -ulpn sport = :%u): stop it, or use another address",
            peer->control_port, ROCE_UDP_PORT, ROCE_UDP_PORT);
    return 0;
}

static int check_numbers(const struct qp_info_endpoint *peer)
{
    if (!endpoint_check_qpns(peer))
        return lh_fail(LH_EHANDSHAKE, "QP number of the peer: out of range (1 to 0xFFFFFF)");
    return 0;
}

int verbs_endpoint_connect(struct fabric_endpoint *base, const struct qp_info_endpoint *peer)
{
    struct verbs_endpoint *endpoint = verbs_endpoint_of(base);
    struct verbs_fabric *fabric = verbs_fabric_of(endpoint);
    if (endpoint->connected)
        return lh_fail(LH_ESTATE, "the endpoint is connected already");
    int error = verbs_endpoint_check(endpoint);
    if (error == 0)
        error = check_identity(endpoint, peer);
    if (error == 0)
        error = check_numbers(peer);
    union ibv_gid gid;
    verbs_gid_from_address(peer->family, peer->address, gid.raw);
    if (error == 0)
        error = verbs_qp_connect(fabric, endpoint->control.qp, &gid, peer->control_qpn);
    for (uint32_t channel = 0; channel < peer->channels && error == 0; channel++)
        for (uint32_t generation = 0; generation < peer->generations && error == 0; generation++)
            error = verbs_qp_connect(fabric, endpoint->channels[channel]->qp[generation], &gid,
                                     peer->qpn[generation][channel]);
    if (error != 0)
        return error;
    endpoint->peer = *peer;
    endpoint->connected = true;
    return 0;
}
