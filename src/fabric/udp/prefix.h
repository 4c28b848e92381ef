/*
 * prefix.h - the part of the iCRC that packets of one flow and length share, cached. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_PREFIX_H
#define LH_FABRIC_UDP_PREFIX_H

#include "wire/icrc.h"

/* Segments of a GSO burst: kernels before 6.9 take no more. */
#define UDP_GSO_SEGMENTS_MAX 64u

/* iCRC state behind the IP and UDP headers, for the datagram length and port that came last, and IP ID 0. */
struct udp_prefix {
    uint32_t bytes; /* 0: nothing cached */
    uint16_t port;
    uint32_t state;
};

/* What the IP ID changes of the state. CRCs are affine over GF(2): that depends on the ID alone, since as
 * many bytes follow it in each prefix, and is the sum of what its bits change. */
extern const uint32_t udp_prefix_low_bits[16];
extern const uint32_t udp_prefix_high_bits[16];

void udp_prefix_fill(struct udp_prefix *prefix, const struct icrc_flow *flow, uint32_t bytes,
                     uint16_t port);

/* icrc_begin() for a data packet, cached. `port` is the one that varies between flows; ip_id counts only for
 * IPv4. Inline: each packet needs it. */
static inline uint32_t udp_prefix_get(struct udp_prefix *prefix, const struct icrc_flow *flow,
                                      uint32_t bytes, uint16_t port, uint32_t ip_id)
{
    if (prefix->bytes != bytes || prefix->port != port)
        udp_prefix_fill(prefix, flow, bytes, port);
    if (!flow->ipv4)
        return prefix->state; /* there is no ID */
    if (ip_id > UINT8_MAX)
        return icrc_begin(flow, bytes, (uint16_t)ip_id, true);
    return prefix->state ^ udp_prefix_low_bits[ip_id & 15] ^ udp_prefix_high_bits[ip_id >> 4];
}

#endif
