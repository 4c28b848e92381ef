/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/path/packet.h"

#include <netinet/in.h>

enum { IPV4_BYTES = 20, IPV6_BYTES = 40, PORT_BYTES = 4 };

static uint16_t read16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static bool read_ipv4(const uint8_t *packet, size_t bytes, struct path_packet_view *view)
{
    size_t header = (packet[0] & 15u) * 4;
    if (bytes < IPV4_BYTES || header < IPV4_BYTES || header > bytes)
        return false;
    bool first = (read16(packet + 6) & 0x1FFF) == 0;
    view->ecn = packet[1] & 3;
    view->protocol = first ? packet[9] : 0;
    view->multicast = packet[16] >= 224;
    view->from_host = packet[15];
    view->to_host = packet[19];
    view->payload = (uint16_t)header;
    return true;
}

static bool read_ipv6(const uint8_t *packet, size_t bytes, struct path_packet_view *view)
{
    if (bytes < IPV6_BYTES)
        return false;
    view->ecn = packet[1] >> 4 & 3;
    view->protocol = packet[6];
    view->multicast = packet[24] == 0xFF;
    view->from_host = packet[23];
    view->to_host = packet[39];
    view->payload = IPV6_BYTES;
    return true;
}

bool path_packet_read(const uint8_t *packet, size_t bytes, struct path_packet_view *view)
{
    *view = (struct path_packet_view){.version = bytes ? packet[0] >> 4 : 0};
    bool whole = (view->version == 4 && read_ipv4(packet, bytes, view)) ||
                 (view->version == 6 && read_ipv6(packet, bytes, view));
    if (whole && (view->protocol == IPPROTO_UDP || view->protocol == IPPROTO_TCP) &&
        bytes >= (size_t)view->payload + PORT_BYTES) {
        view->from_port = read16(packet + view->payload);
        view->to_port = read16(packet + view->payload + 2);
    }
    return whole;
}

void path_packet_set_ecn(uint8_t *packet, const struct path_packet_view *view, uint8_t ecn)
{
    if (view->version == 6) {
        packet[1] = (uint8_t)((packet[1] & 0xCF) | ecn << 4);
        return;
    }
    uint16_t before = read16(packet);
    packet[1] = (uint8_t)((packet[1] & 0xFC) | ecn);
    path_checksum_change(packet + 10, before, read16(packet));
}

void path_checksum_change(uint8_t *checksum, uint16_t before, uint16_t after)
{
    /* HC' = ~(~HC + ~m + m') */
    uint32_t sum = (uint32_t)(uint16_t)~read16(checksum) + (uint16_t)~before + after;
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (sum & 0xFFFF) + (sum >> 16);
    checksum[0] = (uint8_t)(~sum >> 8);
    checksum[1] = (uint8_t)~sum;
}

bool path_filter_drops(const struct path_filter *filter, const struct path_packet_view *view, size_t bytes)
{
    if (filter->above_bytes && bytes > filter->above_bytes)
        return true;
    if (!filter->udp || view->protocol != IPPROTO_UDP)
        return false;
    return !filter->but_port || (view->from_port != filter->but_port && view->to_port != filter->but_port);
}
