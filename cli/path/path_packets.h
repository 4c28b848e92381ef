/*
 * path_packets.h - IP packets of a path: parsing, marking, NAT, and the namespaces between which they pass.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PATH_PATH_PACKETS_H
#define LH_CLI_PATH_PATH_PACKETS_H

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

/* What disappears without a word. */
struct path_filter {
    bool udp;             /* all of UDP … */
    uint16_t but_port;    /* … except from and to this port; 0: no exception */
    uint32_t above_bytes; /* IP packets that are larger; 0: none */
};

bool path_filter_drops(const struct path_filter *filter, const struct path_packet_view *view, size_t bytes);

/* ---- nat ------------------------------------------------------------------------------------------- */

/*
 * A home router before the left end: its IPv4 packets come from another address and port, and
 * only those that it has written to may answer.
 *
 * A pure machine. UDP and TCP; anything else of IPv4 does not pass, IPv6 passes as it is. All that
 * leaves from one address and port has the same new port (endpoint-independent mapping); an answer must
 * come from an address and port that something was sent to from there (address- and port-dependent
 * filtering, RFC 4787). Nothing is forgotten; when the table is full, new flows do not pass.
 */

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

/* ---- network --------------------------------------------------------------------------------------- */

/*
 * The two ends of a path: network namespaces, each with a TUN device whose packets this
 * process reads and writes. They live as long as somebody has them open or lives in them.
 */

enum { PATH_LEFT, PATH_RIGHT, PATH_ENDS };

/* Addresses of an end: one of them as text. */
extern const char *const path_ipv4[PATH_ENDS], *const path_ipv6[PATH_ENDS];

struct path_end {
    int network; /* the namespace, open */
    int tun;     /* single IP packets, without any offload: as they would be on a wire; does not block */
    bool with_ipv6;
};

/* Makes both, in the caller's thread, which must be the only one, and stays in its own network
 * namespace; without root, where the system lets users have namespaces of their own, the process goes
 * into one as its root. mtu: of IP packets. False: not allowed here, reason says why, nothing is left. */
bool path_ends_open(struct path_end end[PATH_ENDS], unsigned mtu, char *reason, size_t size);
void path_ends_close(struct path_end end[PATH_ENDS]);

/* Takes this thread into the network of an end; -1 and errno, or what path_end_leave() takes to be
 * back. */
int path_end_enter(const struct path_end *end);
void path_end_leave(int own);

/* A further IPv4 address of the left end, 10.99.0.host. */
bool path_end_add_host(const struct path_end *left, unsigned host);

/* Packets that the kernel dropped on their way into the device, because nobody read them in time. */
uint64_t path_end_overrun(const struct path_end *end);

#endif
