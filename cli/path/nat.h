/*
 * nat.h - a home router before the left end: its IPv4 packets come from another address and port, and
 * only those that it has written to may answer.
 *
 * A pure machine. UDP and TCP; anything else of IPv4 does not pass, IPv6 passes as it is. All that
 * leaves from one address and port has the same new port (endpoint-independent mapping); an answer must
 * come from an address and port that something was sent to from there (address- and port-dependent
 * filtering, RFC 4787). Nothing is forgotten; when the table is full, new flows do not pass.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PATH_NAT_H
#define LH_CLI_PATH_NAT_H

#include "cli/path/packet.h"

#define PATH_NAT_HOST       254 /* 10.99.0.254 */
#define PATH_NAT_FIRST_PORT 20001
#define PATH_NAT_FLOWS      1024

struct path_nat_flow {
    uint8_t protocol;
    uint8_t host, far_host; /* last bytes of the addresses inside and outside */
    uint16_t port, far_port;
    uint16_t public_port;
};

struct path_nat {
    unsigned flows, ports;
    struct path_nat_flow flow[PATH_NAT_FLOWS];
};

/* Rewrite a packet that the view is of, and the view with it. False: it does not pass. */
bool path_nat_outbound(struct path_nat *nat, uint8_t *packet, size_t bytes, struct path_packet_view *view);
bool path_nat_inbound(const struct path_nat *nat, uint8_t *packet, size_t bytes,
                      struct path_packet_view *view);

#endif
