/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/cnp.h"

#include <assert.h>

static void build(const struct udp_endpoint *endpoint, const union udp_address *to, uint32_t qpn,
                  uint8_t out[ROCE_CNP_BYTES])
{
    const struct udp_fabric *fabric = udp_fabric_of(endpoint);
    struct icrc_flow flow = {
        .ipv4 = udp_address_is_ipv4(&fabric->local),
        .source_port = fabric->front.port,
        .destination_port = udp_address_port(to),
    };
    udp_address_bytes(&fabric->local, flow.source);
    udp_address_bytes(to, flow.destination);
    const struct roce_packet packet = {.opcode = ROCE_CNP, .dest_qpn = qpn};
    size_t header = roce_encode_header(&packet, out);
    icrc_store(icrc_add_header(icrc_begin(&flow, ROCE_CNP_BYTES, 0, true), out, header), out + header);
}

void udp_cnp_on_marked(struct udp_channel *channel, uint8_t generation)
{
    const struct udp_endpoint *endpoint = channel->endpoint;
    struct udp_fabric *fabric = udp_fabric_of(endpoint);
    lh_time *last_ns = &channel->generations[generation].cnp_ns;
    lh_time now = fabric->base.ops->now(&fabric->base);
    assert(endpoint->peer.fabric == QP_INFO_VERBS && generation < endpoint->peer.generations);
    if (*last_ns != 0 && now - *last_ns < UDP_CNP_INTERVAL_NS)
        return;
    *last_ns = now;
    /* From the front, which is not ECN-capable: a notification must not be marked itself. */
    union udp_address to = endpoint->peer_address;
    udp_address_set_port(&to, ROCE_UDP_PORT);
    uint8_t packet[ROCE_CNP_BYTES];
    build(endpoint, &to, channel->generations[generation].peer_qpn, packet);
    /* One that is lost is followed by others while marks arrive. */
    (void)sendto(fabric->front.fd, packet, sizeof packet, MSG_DONTWAIT, &to.any, udp_address_size(&to));
}
