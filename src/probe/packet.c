/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/packet.h"

#include <assert.h>

#include "base/big_endian.h"

void probe_packet_encode(const struct probe_packet *packet, uint8_t *out)
{
    assert(packet->bytes >= PROBE_HEADER_BYTES && packet->bytes <= PROBE_UDP_PAYLOAD_MAX);
    lh_put_be32(out, PROBE_PACKET_MAGIC);
    out[4] = PROBE_PACKET_VERSION;
    out[5] = (uint8_t)packet->kind;
    lh_put_be16(out + 6, packet->flow);
    lh_put_be64(out + 8, packet->token);
    lh_put_be32(out + 16, packet->round);
    lh_put_be32(out + 20, packet->number);
    lh_put_be64(out + 24, packet->sent_ns);
    lh_put_be32(out + 32, packet->bytes);
    lh_put_be32(out + 36, packet->held_ns);
}

bool probe_packet_decode(const uint8_t *data, size_t bytes, struct probe_packet *packet)
{
    if (bytes < PROBE_HEADER_BYTES || bytes > PROBE_UDP_PAYLOAD_MAX)
        return false;
    if (lh_get_be32(data) != PROBE_PACKET_MAGIC || data[4] != PROBE_PACKET_VERSION)
        return false;
    if (data[5] < PROBE_PING || data[5] > PROBE_DATA || lh_get_be32(data + 32) != bytes)
        return false;
    *packet = (struct probe_packet){
        .kind = (enum probe_packet_kind)data[5],
        .flow = lh_get_be16(data + 6),
        .token = lh_get_be64(data + 8),
        .round = lh_get_be32(data + 16),
        .number = lh_get_be32(data + 20),
        .sent_ns = lh_get_be64(data + 24),
        .bytes = (uint32_t)bytes,
        .held_ns = lh_get_be32(data + 36),
    };
    return true;
}
