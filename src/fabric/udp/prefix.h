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

/* icrc_begin() for a data packet, cached. `port` is the one that varies between flows; ip_id counts only for
 * IPv4. */
uint32_t udp_prefix_get(struct udp_prefix *prefix, const struct icrc_flow *flow, uint32_t bytes,
                        uint16_t port, uint32_t ip_id);

#endif
