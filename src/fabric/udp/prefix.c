/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/prefix.h"

const uint32_t udp_prefix_low_bits[16] = {
    0x00000000u, 0x9B73EAD4u, 0xED96D3E9u, 0x76E5393Du, 0x005CA193u, 0x9B2F4B47u, 0xEDCA727Au, 0x76B998AEu,
    0x00B94326u, 0x9BCAA9F2u, 0xED2F90CFu, 0x765C7A1Bu, 0x00E5E2B5u, 0x9B960861u, 0xED73315Cu, 0x7600DB88u,
};
const uint32_t udp_prefix_high_bits[16] = {
    0x00000000u, 0x0172864Cu, 0x02E50C98u, 0x03978AD4u, 0x05CA1930u, 0x04B89F7Cu, 0x072F15A8u, 0x065D93E4u,
    0x0B943260u, 0x0AE6B42Cu, 0x09713EF8u, 0x0803B8B4u, 0x0E5E2B50u, 0x0F2CAD1Cu, 0x0CBB27C8u, 0x0DC9A184u,
};

void udp_prefix_fill(struct udp_prefix *prefix, const struct icrc_flow *flow, uint32_t bytes, uint16_t port)
{
    prefix->bytes = bytes;
    prefix->port = port;
    prefix->state = icrc_begin(flow, bytes, 0, true);
}
