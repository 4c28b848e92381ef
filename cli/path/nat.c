/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/path/nat.h"

#include <netinet/in.h>

enum {
    IPV4_CHECKSUM = 10,
    IPV4_FROM_HOST = 15, /* last bytes of the addresses */
    IPV4_TO_HOST = 19,
    FROM_PORT = 0, /* after the IP header */
    TO_PORT = 2,
    UDP_CHECKSUM = 6,
    TCP_CHECKSUM = 16,
};

static uint16_t read16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

/* Both checksums hold the address. The host is the low byte of a 16-bit word of it. */
static void rewrite(uint8_t *packet, const struct path_packet_view *view, unsigned host_at, uint8_t host,
                    unsigned port_at, uint16_t port)
{
    uint8_t *payload = packet + view->payload;
    uint8_t *sum = payload + (view->protocol == IPPROTO_UDP ? UDP_CHECKSUM : TCP_CHECKSUM);
    uint16_t host_before = read16(packet + host_at - 1), port_before = read16(payload + port_at);
    packet[host_at] = host;
    payload[port_at] = (uint8_t)(port >> 8);
    payload[port_at + 1] = (uint8_t)port;
    path_checksum_change(packet + IPV4_CHECKSUM, host_before, read16(packet + host_at - 1));
    /* UDP without a checksum stays so. */
    if (view->protocol == IPPROTO_UDP && !read16(sum))
        return;
    path_checksum_change(sum, host_before, read16(packet + host_at - 1));
    path_checksum_change(sum, port_before, port);
    if (view->protocol == IPPROTO_UDP && !read16(sum))
        sum[0] = sum[1] = 0xFF;
}

static bool passes(const struct path_packet_view *view, size_t bytes)
{
    size_t payload = bytes - view->payload;
    return (view->protocol == IPPROTO_UDP && payload >= UDP_CHECKSUM + 2) ||
           (view->protocol == IPPROTO_TCP && payload >= TCP_CHECKSUM + 2);
}

static bool inside_is(const struct path_nat_flow *flow, const struct path_packet_view *view)
{
    return flow->protocol == view->protocol && flow->host == view->from_host &&
           flow->port == view->from_port;
}

static const struct path_nat_flow *find_or_add(struct path_nat *nat, const struct path_packet_view *view)
{
    uint16_t public_port = 0;
    for (unsigned i = 0; i < nat->flows; i++) {
        const struct path_nat_flow *flow = &nat->flow[i];
        if (!inside_is(flow, view))
            continue;
        if (flow->far_host == view->to_host && flow->far_port == view->to_port)
            return flow;
        public_port = flow->public_port;
    }
    if (nat->flows == PATH_NAT_FLOWS)
        return NULL;
    if (!public_port)
        public_port = (uint16_t)(PATH_NAT_FIRST_PORT + nat->ports++);
    nat->flow[nat->flows] = (struct path_nat_flow){
        .protocol = view->protocol,
        .host = view->from_host,
        .far_host = view->to_host,
        .port = view->from_port,
        .far_port = view->to_port,
        .public_port = public_port,
    };
    return &nat->flow[nat->flows++];
}

bool path_nat_outbound(struct path_nat *nat, uint8_t *packet, size_t bytes, struct path_packet_view *view)
{
    if (view->version == 6)
        return true;
    const struct path_nat_flow *flow = passes(view, bytes) ? find_or_add(nat, view) : NULL;
    if (!flow)
        return false;
    rewrite(packet, view, IPV4_FROM_HOST, PATH_NAT_HOST, FROM_PORT, flow->public_port);
    view->from_host = PATH_NAT_HOST;
    view->from_port = flow->public_port;
    return true;
}

bool path_nat_inbound(const struct path_nat *nat, uint8_t *packet, size_t bytes,
                      struct path_packet_view *view)
{
    if (view->version == 6)
        return true;
    for (unsigned i = 0; passes(view, bytes) && view->to_host == PATH_NAT_HOST && i < nat->flows; i++) {
        const struct path_nat_flow *flow = &nat->flow[i];
        if (flow->protocol != view->protocol || flow->public_port != view->to_port ||
            flow->far_host != view->from_host || flow->far_port != view->from_port)
            continue;
        rewrite(packet, view, IPV4_TO_HOST, flow->host, TO_PORT, flow->port);
        view->to_host = flow->host;
        view->to_port = flow->port;
        return true;
    }
    return false;
}
