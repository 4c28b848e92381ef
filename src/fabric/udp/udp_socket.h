/*
 * socket.h - making UDP sockets from which RoCE packets can be sent, and asking the kernel about paths.
 *
 * No socket here is ever connected for traffic: on IPv4 a connected socket takes its IP IDs from a random
 * base that the process cannot see, and the ID enters the iCRC. An unconnected one with IP_PMTUDISC_PROBE
 * always sends ID 0 (and k for segment k of a GSO burst), with don't-fragment set.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_SOCKET_H
#define LH_FABRIC_UDP_SOCKET_H

#include <longhaul/types.h>

#include <sys/socket.h>

#include "fabric/udp/address.h"

/* Source ports of data sockets: RoCEv2 keeps to the dynamic range (Annex A17.9), where switches expect
 * entropy. */
#define UDP_DATA_PORT_MIN 49152u
#define UDP_DATA_PORT_MAX 65535u

/* Largest that is asked of the kernel: the doubled value is an int. */
#define UDP_SOCKET_BUFFER_MAX ((uint64_t)512 << 20)

struct udp_socket {
    int fd;
    uint16_t port;
    uint64_t receive_bytes; /* granted, in the measure of what was asked */
};

/* On a free port of the data range, tried from a random start; nobody else has a socket there. GRO is on
 * where the kernel has it. Marks of what comes are shown (udp_cmsg_is_marked), at the others, too. */
int udp_socket_open_shared(const union udp_address *local, uint64_t receive_bytes, struct udp_socket *made);
/* Another one on the port of a shared socket. All that comes is cut down to its header, until
 * udp_filter_attach() sets whose packets are not; and nothing comes before udp_steer_attach() says so, but it
 * may send. */
int udp_socket_open_direct(const union udp_address *local, uint16_t port, uint64_t receive_bytes,
                           struct udp_socket *made);
/* On ROCE_UDP_PORT when that is free on this address, else on a port of the data range, which
 * firewalls let through as well. GRO is on where the kernel has it. */
int udp_socket_open_front(const union udp_address *local, uint64_t receive_bytes, struct udp_socket *made);
/* How long ago what was read last had come to the socket; 0: unknown. */
lh_time udp_socket_ago(int fd);
void udp_socket_close(struct udp_socket *socket);

#define UDP_ECN_CONTROL_BYTES CMSG_SPACE(sizeof(int))
/* Writes the control message with which a packet leaves as ECT(0), ECN-capable (RFC 3168). */
void udp_cmsg_set_ecn(struct cmsghdr *cmsg, bool ipv4);
/* Where the egress queue is fq, the kernel spaces the socket's packets by this rate, a GSO burst at a time;
 * elsewhere UDP ignores it. Bits on the wire a second, IP header and up; UINT64_MAX: no rate. */
void udp_socket_set_rate(const struct udp_socket *socket, uint64_t rate_bps);
/* Whether a control message of the kernel says "congestion experienced" (RFC 3168) of what arrived. Packets
 * that the kernel joined have the same mark since Linux 6.9 and its stable releases of that time ("net: gro:
 * add flush check in udp_gro_receive_segment"); before, only TCP compared it, and the first packet's mark
 * stands for all. */
bool udp_cmsg_is_marked(const struct cmsghdr *cmsg);

/* The largest IP packet that the path to the peer is known to take. -LH_EADDR when there is no way. */
int udp_path_mtu(const union udp_address *local, const union udp_address *peer, uint32_t *bytes);

#endif
