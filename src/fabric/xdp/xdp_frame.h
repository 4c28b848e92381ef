/*
 * xdp_frame.h - Ethernet frames around UDP datagrams: building, parsing, checksums. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_XDP_XDP_FRAME_H
#define LH_FABRIC_XDP_XDP_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "fabric/udp/udp_address.h"

#define XDP_MAC_BYTES        6u
#define XDP_ETHERNET_BYTES   14u
#define XDP_IPV4_BYTES       20u
#define XDP_IPV6_BYTES       40u
#define XDP_UDP_BYTES        8u
#define XDP_FRAME_HEADER_MAX (XDP_ETHERNET_BYTES + XDP_IPV6_BYTES + XDP_UDP_BYTES)
#define XDP_ETHERTYPE_IPV4   0x0800u
#define XDP_ETHERTYPE_IPV6   0x86DDu
#define XDP_PROTOCOL_UDP     17u

/* The headers of all datagrams of one flow. */
struct xdp_flow {
    bool ipv4;
    uint32_t header_bytes; /* Ethernet, IP and UDP */
    uint32_t ipv4_sum;     /* of the IPv4 header with length and ID 0, not folded */
    uint32_t pseudo_sum;   /* IPv6: of addresses, protocol and ports, not folded */
    uint8_t header[XDP_FRAME_HEADER_MAX];
};

/* Writes the headers of datagrams between two addresses of one family, ports included; ECT(0) where `ecn`. */
void xdp_flow_make(struct xdp_flow *flow, const uint8_t source_mac[XDP_MAC_BYTES],
                   const uint8_t destination_mac[XDP_MAC_BYTES], const union udp_address *source,
                   const union udp_address *destination, bool ecn);
/* Writes the headers of a datagram into `frame`, behind which its payload lies: lengths, the ID (IPv4), the
 * checksum: of the header for IPv4, whose UDP checksum is 0 as in RoCEv2, else of the datagram. Returns the
 * bytes of the frame. */
uint32_t xdp_frame_finish(const struct xdp_flow *flow, uint8_t *frame, uint32_t payload_bytes,
                          uint16_t ip_id);
/* The sum of 16-bit words in the order of the host, an odd last byte padded with 0; not folded below 32
 * bits. */
uint32_t xdp_sum(const uint8_t *data, uint32_t bytes);

/* A UDP datagram of a frame. */
struct xdp_datagram {
    union udp_address from; /* with its port; IPv6: scope 0 */
    union udp_address to;
    const uint8_t *payload;
    uint32_t bytes;
    uint16_t ip_id;
    bool marked; /* congestion experienced */
};

/* Reads a frame of that many bytes: whole, one UDP datagram, no IPv4 options, no fragment, no extension
 * headers. Bytes behind the datagram are ignored: short frames are padded. The UDP checksum is not verified:
 * the iCRC is, and hosts pass packets to each other before it is filled in. False: it is none. */
bool xdp_frame_parse(const uint8_t *frame, uint32_t bytes, struct xdp_datagram *datagram);

/* ---- gather ---------------------------------------------------------------------------------------- */

/* Copies consecutive bytes out of pieces. */
struct xdp_gather {
    const struct iovec *pieces;
    size_t count;
    size_t offset; /* in the first */
};

/* Copies up to `bytes`; fewer when the pieces end. Returns the number. */
uint32_t xdp_gather_copy(struct xdp_gather *gather, uint8_t *out, uint32_t bytes);

#endif
