/*
 * connect.c - learning who the peer is, and whether it can be reached from here at the MTU that was agreed
 * on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/connect.h"

#include "base/error.h"
#include "fabric/endpoint_check.h"
#include "fabric/udp/demux.h"
#include "fabric/udp/port.h"

/* Hardware has no ports of its own that a packet could show. */
static int check_translation(const struct qp_info_endpoint *peer)
{
    if (!peer->translated || peer->fabric == QP_INFO_UDP)
        return 0;
    return lh_fail(LH_EADDR,
                   "RoCE hardware does not pass NAT (use a path without, or --device udp:ADDRESS)");
}

static int check_identity(const struct udp_endpoint *endpoint, const struct qp_info_endpoint *peer)
{
    bool ipv4 = udp_address_is_ipv4(&udp_fabric_of(endpoint)->local);
    if (peer->fabric != QP_INFO_UDP && peer->fabric != QP_INFO_VERBS)
        return lh_fail(LH_EHANDSHAKE,
                       "peer fabric %u: unsupported (udp connects to udp (%u) and verbs (%u))",
                       peer->fabric, QP_INFO_UDP, QP_INFO_VERBS);
    if (peer->family != (ipv4 ? 4 : 6))
        return lh_fail(
            LH_EADDR,
            "address family mismatch: peer IPv%u, this side IPv%u (open both devices with the same family)",
            peer->family, ipv4 ? 4 : 6);
    return endpoint_check_peer(&endpoint->table.attr, peer);
}

static int check_numbers(const struct qp_info_endpoint *peer)
{
    bool valid = endpoint_check_qpns(peer) && peer->control_port != 0;
    for (uint32_t channel = 0; channel < peer->channels; channel++)
        valid = valid && peer->channel_port[channel] != 0;
    if (!valid)
        return lh_fail(LH_EHANDSHAKE,
                       "UDP port or QP number of the peer: out of range (port from 1, QP 1 to 0xFFFFFF)");
    return 0;
}

/* Hardware sends to one port only, and ignores that we might have another. */
static int check_front(const struct udp_fabric *fabric, const struct qp_info_endpoint *peer)
{
    if (peer->fabric != QP_INFO_VERBS || fabric->front.port == ROCE_UDP_PORT)
        return 0;
    char text[UDP_ADDRESS_TEXT_MAX];
    return lh_fail(
        LH_EADDR,
        "the peer is RoCE hardware, which sends to UDP port %u of %s only, and another process holds that: "
        "find it with \"ss -ulpn sport = :%u\" and stop it (or unload rdma_rxe), or use another address",
        ROCE_UDP_PORT, udp_address_format(&fabric->local, text), ROCE_UDP_PORT);
}

static int check_mtu(const struct udp_endpoint *endpoint, const union udp_address *peer)
{
    const struct udp_fabric *fabric = udp_fabric_of(endpoint);
    uint32_t mtu_bytes = endpoint->table.attr.mtu_bytes;
    uint32_t path_bytes;
    int error = udp_path_mtu(&fabric->local, peer, &path_bytes);
    if (error != 0)
        return error;
    uint32_t overhead =
        udp_address_is_ipv4(&fabric->local) ? ROCE_WRITE_IMM_OVERHEAD_V4 : ROCE_WRITE_IMM_OVERHEAD_V6;
    if (mtu_bytes + overhead <= path_bytes)
        return 0;
    uint32_t fits = ROCE_MTU_MAX;
    while (fits >= ROCE_MTU_MIN && fits + overhead > path_bytes)
        fits /= 2;
    char text[UDP_ADDRESS_TEXT_MAX];
    udp_address_format(peer, text);
    if (fits < ROCE_MTU_MIN)
        return lh_fail(
            LH_EMTU, "the path to %s takes IP packets of %u bytes, and the smallest RoCE MTU (%u) needs %u",
            text, path_bytes, ROCE_MTU_MIN, ROCE_MTU_MIN + overhead);
    return lh_fail(
        LH_EMTU,
        "an MTU of %u needs IP packets of %u bytes, and the path to %s takes %u; the largest RoCE MTU that "
        "fits is %u",
        mtu_bytes, mtu_bytes + overhead, text, path_bytes, fits);
}

static void connect_channel(struct udp_channel *channel, const struct qp_info_endpoint *peer)
{
    const struct udp_endpoint *endpoint = channel->endpoint;
    const struct udp_fabric *fabric = udp_fabric_of(endpoint);
    bool hardware = peer->fabric == QP_INFO_VERBS;
    uint16_t there = hardware ? ROCE_UDP_PORT : peer->channel_port[channel->index];
    channel->peer_port = peer->channel_port[channel->index];
    for (uint32_t generation = 0; generation < peer->generations; generation++)
        channel->generations[generation].peer_qpn = peer->qpn[generation][channel->index];
    uint16_t here = hardware ? fabric->front.port : channel->port->shared.port;

    struct udp_tx *tx = &channel->tx;
    tx->to = endpoint->peer_address;
    udp_address_set_port(&tx->to, there);
    tx->flow.ipv4 = udp_address_is_ipv4(&fabric->local);
    udp_address_bytes(&fabric->local, tx->flow.source);
    udp_address_bytes(&endpoint->peer_address, tx->flow.destination);
    tx->flow.source_port = channel->port->shared.port;
    tx->flow.destination_port = there;
    tx->prefix = (struct udp_prefix){0};

    struct udp_rx *rx = &channel->rx;
    rx->flow.ipv4 = tx->flow.ipv4;
    udp_address_bytes(&endpoint->peer_address, rx->flow.source);
    udp_address_bytes(&fabric->local, rx->flow.destination);
    rx->flow.source_port = there;
    rx->flow.destination_port = here;
    rx->prefix = (struct udp_prefix){0};
}

int udp_endpoint_connect(struct fabric_endpoint *endpoint, const struct qp_info_endpoint *peer)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    struct udp_fabric *fabric = udp_fabric_of(udp);
    if (udp->connected)
        return lh_fail(LH_ESTATE, "the endpoint is connected already");
    int error = check_identity(udp, peer);
    if (error == 0)
        error = check_numbers(peer);
    if (error == 0)
        error = check_translation(peer);
    if (error == 0)
        error = check_front(fabric, peer);
    if (error != 0)
        return error;
    union udp_address address =
        udp_address_make(peer->family, peer->address, peer->control_port, &fabric->local);
    union udp_address seen = address;
    if (peer->translated)
        seen = udp_address_make(peer->family, peer->seen_address, peer->control_port, &fabric->local);
    error = check_mtu(udp, &address);
    if (error == -LH_EADDR && peer->translated) /* its own address leads nowhere from here */
        error = check_mtu(udp, &seen);
    if (error != 0)
        return error;
    udp_address_set_port(&address, 0);
    udp_address_set_port(&seen, 0);
    /* Another endpoint's control_poll may read this one at any time. */
    pthread_mutex_lock(&fabric->lock);
    udp->peer = (struct udp_peer){
        .fabric = peer->fabric,
        .generations = peer->generations,
        .translated = peer->translated,
        .control_port = peer->control_port,
        .control_qpn = peer->control_qpn,
        .proof = peer->proof,
    };
    udp->peer_address = address;
    udp->seen_address = seen;
    for (uint32_t i = 0; i < udp->table.attr.channels; i++)
        connect_channel(udp->channels[i], peer);
    udp_demux_forget_early(udp);
    udp->connected = true;
    for (uint32_t i = 0; i < udp->table.attr.channels; i++)
        udp_port_promote(udp->channels[i]);
    pthread_mutex_unlock(&fabric->lock);
    return 0;
}
