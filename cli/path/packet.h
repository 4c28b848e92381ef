/*
 * packet.h - what a path sees of an IP packet, and what it changes there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PATH_PACKET_H
#define LH_CLI_PATH_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PATH_ECN_NOT_CAPABLE = 0, PATH_ECN_CONGESTION = 3 }; /* RFC 3168; the other two are capable, too */

struct path_packet_view {
    uint8_t version; /* 4 or 6 */
    uint8_t ecn;
    uint8_t protocol; /* IPPROTO_…, of what stands behind the IP header; 0: of a later fragment */
    bool multicast;   /* what hosts tell their neighbours by themselves */
    uint16_t payload; /* offset of what follows the IP header */
    uint8_t from_host, to_host;  /* last bytes of the addresses */
    uint16_t from_port, to_port; /* of UDP and TCP, else 0 */
};

/* False: no IP packet. IPv6 extension headers are not followed: their protocol is that of the first. */
bool path_packet_read(const uint8_t *packet, size_t bytes, struct path_packet_view *view);
/* Writes the two bits, and corrects the checksum of IPv4. */
void path_packet_set_ecn(uint8_t *packet, const struct path_packet_view *view, uint8_t ecn);

/* Corrects an Internet checksum for a 16-bit word of what it covers that has changed (RFC 1624). */
void path_checksum_change(uint8_t *checksum, uint16_t before, uint16_t after);

/* What disappears without a word. */
struct path_filter {
    bool udp;             /* all of UDP … */
    uint16_t but_port;    /* … except from and to this port; 0: no exception */
    uint32_t above_bytes; /* IP packets that are larger; 0: none */
};

bool path_filter_drops(const struct path_filter *filter, const struct path_packet_view *view, size_t bytes);

#endif
