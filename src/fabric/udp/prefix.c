/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/prefix.h"

uint32_t udp_prefix_get(struct udp_prefix *prefix, const struct icrc_flow *flow, uint32_t bytes,
                        uint16_t port, uint32_t ip_id)
{
    if (!flow->ipv4)
        ip_id = 0; /* there is none; one state serves all */
    if (ip_id >= UDP_GSO_SEGMENTS_MAX)
        return icrc_begin(flow, bytes, (uint16_t)ip_id, true);
    if (prefix->bytes != bytes || prefix->port != port) {
        prefix->bytes = bytes;
        prefix->port = port;
        prefix->known = 0;
    }
    if (((prefix->known >> ip_id) & 1) == 0) {
        prefix->state[ip_id] = icrc_begin(flow, bytes, (uint16_t)ip_id, true);
        prefix->known |= (uint64_t)1 << ip_id;
    }
    return prefix->state[ip_id];
}
