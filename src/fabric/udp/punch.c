/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/punch.h"

#include <time.h>

#define PUNCH_FIRST_NS LH_NS_PER_MS
#define PUNCH_LAST_NS  (5 * LH_NS_PER_S) /* NAT keeps what it saw for 30 s and more (RFC 4787, REQ-5) */
#define PUNCH_BYTES    (ROCE_WRITE_IMM_HEADER_BYTES + ROCE_ICRC_BYTES)

static lh_time punch_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (lh_time)time.tv_sec * LH_NS_PER_S + (lh_time)time.tv_nsec;
}

/* Reads of the channel only what stays as it was connected: its thread may be sending. The shared socket has
 * the port of all others. */
static void punch_channel(const struct udp_channel *channel)
{
    const struct udp_endpoint *endpoint = channel->endpoint;
    const struct icrc_flow *flow = &channel->tx.flow;
    uint8_t bytes[PUNCH_BYTES];
    const struct roce_packet packet = {
        .opcode = ROCE_UC_WRITE_ONLY_IMM,
        .dest_qpn = channel->generations[0].peer_qpn,
        .immediate = endpoint->punch_proof,
    };
    size_t header = roce_encode_header(&packet, bytes);
    uint32_t state = icrc_add_header(icrc_begin(flow, sizeof bytes, 0, true), bytes, header);
    icrc_store(state, bytes + header);
    union udp_address to = endpoint->peer_address;
    udp_address_set_port(&to, flow->destination_port);
    ssize_t sent =
        sendto(channel->port->shared.fd, bytes, sizeof bytes, MSG_DONTWAIT, &to.any, udp_address_size(&to));
    (void)sent; /* as lost as any packet may be */
}

void udp_punch_due(struct udp_endpoint *endpoint)
{
    lh_time now = punch_now();
    if (now < endpoint->punch_at)
        return;
    endpoint->punch_span = endpoint->punch_span == 0 ? PUNCH_FIRST_NS : 2 * endpoint->punch_span;
    if (endpoint->punch_span > PUNCH_LAST_NS)
        endpoint->punch_span = PUNCH_LAST_NS;
    endpoint->punch_at = now + endpoint->punch_span;
    for (uint32_t i = 0; i < endpoint->table.attr.channels; i++)
        punch_channel(endpoint->channels[i]);
}

void udp_punch(struct fabric_endpoint *endpoint, uint32_t proof)
{
    struct udp_endpoint *udp = udp_endpoint_of(endpoint);
    udp->punch_proof = proof;
    atomic_store_explicit(&udp->punching, true, memory_order_release);
}
