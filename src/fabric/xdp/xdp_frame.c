/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/xdp/xdp_frame.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/min_max.h"
#include "fabric/udp/udp_address.h"

#define HOP_LIMIT          64u
#define DONT_FRAGMENT      0x4000u
#define FRAGMENT_MASK      0x3FFFu /* more fragments, and the offset */
#define VERSION_4          0x45u   /* with the length of a header without options */
#define VERSION_6          0x60u
#define ECN_MASK           3u
#define ECN_CAPABLE        2u /* ECT(0), RFC 3168 */
#define ECN_MARKED         3u
#define AT_IP              XDP_ETHERNET_BYTES
#define IPV4_AT_LENGTH     2u
#define IPV4_AT_ID         4u
#define IPV4_AT_CHECKSUM   10u
#define IPV4_AT_SOURCE     12u
#define IPV6_AT_LENGTH     4u
#define IPV6_AT_SOURCE     8u
#define IPV6_ADDRESS_BYTES 16u
#define UDP_AT_LENGTH      4u
#define UDP_AT_CHECKSUM    6u

/* ---- checksums (RFC 1071) ---------------------------------------------------------------------------- */

/* Four sums of 32-bit words side by side; the carries of all go into their upper halves, which hold those of
 * 2^32 words. */
uint32_t xdp_sum(const uint8_t *data, uint32_t bytes)
{
    uint64_t sums[4] = {0};
    uint32_t at = 0;
    for (; at + 16 <= bytes; at += 16) {
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t word;
            memcpy(&word, data + at + 4 * i, sizeof word);
            sums[i] += word;
        }
    }
    uint64_t sum = sums[0] + sums[1] + sums[2] + sums[3];
    for (; at < bytes; at += 2) {
        uint16_t word = 0;
        memcpy(&word, data + at, at + 2 <= bytes ? 2 : 1);
        sum += word;
    }
    sum = (sum >> 32) + (uint32_t)sum;
    sum = (sum >> 16) + (sum & 0xFFFF);
    return (uint32_t)sum;
}

/* In the order of the host, as the sum is. */
static uint16_t fold(uint64_t sum)
{
    while (sum > 0xFFFF) /* each round removes 16 bits or the carry */
        sum = (sum >> 16) + (sum & 0xFFFF);
    return (uint16_t)~sum;
}

static void store_checksum(uint8_t *out, uint16_t checksum)
{
    memcpy(out, &checksum, sizeof checksum);
}

/* ---- building ---------------------------------------------------------------------------------------- */

static void make_ipv4(struct xdp_flow *flow, const union udp_address *source,
                      const union udp_address *destination, bool ecn)
{
    uint8_t *ip = flow->header + AT_IP;
    ip[0] = VERSION_4;
    ip[1] = ecn ? ECN_CAPABLE : 0;
    lh_put_be16(ip + 6, DONT_FRAGMENT);
    ip[8] = HOP_LIMIT;
    ip[9] = XDP_PROTOCOL_UDP;
    memcpy(ip + IPV4_AT_SOURCE, &source->v4.sin_addr, 4);
    memcpy(ip + IPV4_AT_SOURCE + 4, &destination->v4.sin_addr, 4);
    flow->ipv4_sum = xdp_sum(ip, XDP_IPV4_BYTES);
}

static void make_ipv6(struct xdp_flow *flow, const union udp_address *source,
                      const union udp_address *destination, bool ecn)
{
    uint8_t *ip = flow->header + AT_IP;
    ip[0] = VERSION_6;
    ip[1] = ecn ? ECN_CAPABLE << 4 : 0; /* the lower half of the traffic class */
    ip[6] = XDP_PROTOCOL_UDP;
    ip[7] = HOP_LIMIT;
    memcpy(ip + IPV6_AT_SOURCE, &source->v6.sin6_addr, IPV6_ADDRESS_BYTES);
    memcpy(ip + IPV6_AT_SOURCE + IPV6_ADDRESS_BYTES, &destination->v6.sin6_addr, IPV6_ADDRESS_BYTES);
    flow->pseudo_sum = xdp_sum(ip + IPV6_AT_SOURCE, 2 * IPV6_ADDRESS_BYTES) + htons(XDP_PROTOCOL_UDP) +
                       xdp_sum(ip + XDP_IPV6_BYTES, 4);
}

void xdp_flow_make(struct xdp_flow *flow, const uint8_t source_mac[XDP_MAC_BYTES],
                   const uint8_t destination_mac[XDP_MAC_BYTES], const union udp_address *source,
                   const union udp_address *destination, bool ecn)
{
    const bool ipv4 = udp_address_is_ipv4(source);
    const uint32_t ip_bytes = ipv4 ? XDP_IPV4_BYTES : XDP_IPV6_BYTES;
    assert(source->any.sa_family == destination->any.sa_family);
    *flow = (struct xdp_flow){.ipv4 = ipv4, .header_bytes = AT_IP + ip_bytes + XDP_UDP_BYTES};
    memcpy(flow->header, destination_mac, XDP_MAC_BYTES);
    memcpy(flow->header + XDP_MAC_BYTES, source_mac, XDP_MAC_BYTES);
    lh_put_be16(flow->header + 2 * XDP_MAC_BYTES, ipv4 ? XDP_ETHERTYPE_IPV4 : XDP_ETHERTYPE_IPV6);
    uint8_t *udp = flow->header + AT_IP + ip_bytes;
    lh_put_be16(udp, udp_address_port(source));
    lh_put_be16(udp + 2, udp_address_port(destination));
    if (ipv4)
        make_ipv4(flow, source, destination, ecn);
    else
        make_ipv6(flow, source, destination, ecn);
}

uint32_t xdp_frame_finish(const struct xdp_flow *flow, uint8_t *frame, uint32_t payload_bytes,
                          uint16_t ip_id)
{
    const uint16_t udp_bytes = (uint16_t)(XDP_UDP_BYTES + payload_bytes);
    uint8_t *ip = frame + AT_IP;
    uint8_t *udp = frame + flow->header_bytes - XDP_UDP_BYTES;
    assert(payload_bytes <= UINT16_MAX - XDP_UDP_BYTES - XDP_IPV4_BYTES);
    memcpy(frame, flow->header, flow->header_bytes);
    lh_put_be16(udp + UDP_AT_LENGTH, udp_bytes);
    if (flow->ipv4) {
        const uint16_t total = (uint16_t)(XDP_IPV4_BYTES + udp_bytes);
        lh_put_be16(ip + IPV4_AT_LENGTH, total);
        lh_put_be16(ip + IPV4_AT_ID, ip_id);
        store_checksum(ip + IPV4_AT_CHECKSUM, fold((uint64_t)flow->ipv4_sum + htons(total) + htons(ip_id)));
    } else {
        lh_put_be16(ip + IPV6_AT_LENGTH, udp_bytes);
        /* The length counts twice: in the pseudo-header and in the header. */
        uint16_t checksum = fold((uint64_t)flow->pseudo_sum + 2u * htons(udp_bytes) +
                                 xdp_sum(udp + XDP_UDP_BYTES, payload_bytes));
        store_checksum(udp + UDP_AT_CHECKSUM, checksum == 0 ? UINT16_MAX : checksum); /* RFC 8200, 8.1 */
    }
    return flow->header_bytes + payload_bytes;
}

/* ---- parsing ----------------------------------------------------------------------------------------- */

/* The UDP header and what follows in `bytes`. */
static bool parse_udp(const uint8_t *udp, uint32_t bytes, struct xdp_datagram *datagram)
{
    if (bytes < XDP_UDP_BYTES)
        return false;
    uint32_t length = lh_get_be16(udp + UDP_AT_LENGTH);
    if (length < XDP_UDP_BYTES || length > bytes)
        return false;
    datagram->payload = udp + XDP_UDP_BYTES;
    datagram->bytes = length - XDP_UDP_BYTES;
    udp_address_set_port(&datagram->from, lh_get_be16(udp));
    udp_address_set_port(&datagram->to, lh_get_be16(udp + 2));
    return true;
}

static bool parse_ipv4(const uint8_t *ip, uint32_t bytes, struct xdp_datagram *datagram)
{
    if (bytes < XDP_IPV4_BYTES || ip[0] != VERSION_4 || ip[9] != XDP_PROTOCOL_UDP)
        return false;
    uint32_t total = lh_get_be16(ip + IPV4_AT_LENGTH);
    if (total < XDP_IPV4_BYTES || total > bytes || (lh_get_be16(ip + 6) & FRAGMENT_MASK) != 0)
        return false;
    datagram->from.v4.sin_family = AF_INET;
    datagram->to.v4.sin_family = AF_INET;
    memcpy(&datagram->from.v4.sin_addr, ip + IPV4_AT_SOURCE, 4);
    memcpy(&datagram->to.v4.sin_addr, ip + IPV4_AT_SOURCE + 4, 4);
    datagram->ip_id = lh_get_be16(ip + IPV4_AT_ID);
    datagram->marked = (ip[1] & ECN_MASK) == ECN_MARKED;
    return parse_udp(ip + XDP_IPV4_BYTES, total - XDP_IPV4_BYTES, datagram);
}

static bool parse_ipv6(const uint8_t *ip, uint32_t bytes, struct xdp_datagram *datagram)
{
    if (bytes < XDP_IPV6_BYTES || ip[0] >> 4 != VERSION_6 >> 4 || ip[6] != XDP_PROTOCOL_UDP)
        return false;
    uint32_t length = lh_get_be16(ip + IPV6_AT_LENGTH);
    if (length > bytes - XDP_IPV6_BYTES)
        return false;
    datagram->from.v6.sin6_family = AF_INET6;
    datagram->to.v6.sin6_family = AF_INET6;
    memcpy(&datagram->from.v6.sin6_addr, ip + IPV6_AT_SOURCE, IPV6_ADDRESS_BYTES);
    memcpy(&datagram->to.v6.sin6_addr, ip + IPV6_AT_SOURCE + IPV6_ADDRESS_BYTES, IPV6_ADDRESS_BYTES);
    datagram->marked = (ip[1] >> 4 & ECN_MASK) == ECN_MARKED;
    return parse_udp(ip + XDP_IPV6_BYTES, length, datagram);
}

bool xdp_frame_parse(const uint8_t *frame, uint32_t bytes, struct xdp_datagram *datagram)
{
    *datagram = (struct xdp_datagram){0};
    if (bytes < XDP_ETHERNET_BYTES)
        return false;
    switch (lh_get_be16(frame + 2 * XDP_MAC_BYTES)) {
    case XDP_ETHERTYPE_IPV4:
        return parse_ipv4(frame + AT_IP, bytes - AT_IP, datagram);
    case XDP_ETHERTYPE_IPV6:
        return parse_ipv6(frame + AT_IP, bytes - AT_IP, datagram);
    default:
        return false;
    }
}

/* ---- gather ---------------------------------------------------------------------------------------- */

uint32_t xdp_gather_copy(struct xdp_gather *gather, uint8_t *out, uint32_t bytes)
{
    uint32_t copied = 0;
    while (copied < bytes && gather->count > 0) { /* each round ends a piece or the copy */
        const struct iovec *piece = gather->pieces;
        size_t part = lh_min(bytes - copied, piece->iov_len - gather->offset);
        if (part > 0)
            memcpy(out + copied, (const uint8_t *)piece->iov_base + gather->offset, part);
        copied += (uint32_t)part;
        gather->offset += part;
        if (gather->offset < piece->iov_len)
            break;
        gather->pieces++;
        gather->count--;
        gather->offset = 0;
    }
    return copied;
}
