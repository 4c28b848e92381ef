/*
 * udp_socket.h - UDP sockets for RoCE packets, their filters, and what the kernel knows of paths.
 *
 * No socket here is ever connected for traffic: on IPv4 a connected socket takes its IP IDs from a random
 * base that the process cannot see, and the ID enters the iCRC. An unconnected one with IP_PMTUDISC_PROBE
 * always sends ID 0 (and k for segment k of a GSO burst), with don't-fragment set.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_UDP_SOCKET_H
#define LH_FABRIC_UDP_UDP_SOCKET_H

#include <linux/filter.h>
#include <sys/socket.h>

#include <longhaul/types.h>

#include "fabric/udp/udp_address.h"
#include "wire/qp_info.h"

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

/* ---- filter ---------------------------------------------------------------------------------------- */

/*
 * What the kernel checks of a data packet: a classic BPF program on the socket, which needs no
 * privilege.
 *
 * A packet that is not the peer's is not dropped but cut down to its header: it costs no copy, and is counted
 * under the name of what is wrong with it, like any other. The filter is there before the socket has a port;
 * until the peer is known, everything is cut.
 *
 * Its view is that of one kernel message. Packets that the kernel joined (GRO) come from one address and
 * port, and are filtered by the first one's header.
 *
 * Another such program, of a port that has several sockets, steers: it chooses the socket by queue pair
 * number. Not by source, as connect() would: all connections between two fabrics have the same addresses and
 * ports, and a peer's may change (NAT).
 */

#define UDP_FILTER_STEPS_MAX 64u

/* Whose data packets pass whole. */
struct udp_filter_peer {
    union udp_address address; /* with the port that they come from */
    bool translated;           /* they may as well come from any port of the next */
    union udp_address seen_address;
    bool sealed; /* they are encrypted: no others pass */
    uint32_t mtu_bytes;
    uint32_t generations;
    uint32_t qpn[QP_INFO_GENERATIONS_MAX]; /* ours, one a generation */
};

/* Writes the program for this peer, or for NULL the one that cuts everything; returns its length. */
uint16_t udp_filter_make(const struct udp_filter_peer *peer,
                         struct sock_filter steps[UDP_FILTER_STEPS_MAX]);
/* Puts it in the place of the one before. -LH_ESYSTEM. */
int udp_filter_attach(int fd, const struct udp_filter_peer *peer);

/* Packets for any of these QPs go to the socket of a port that was bound in this place; 0 is the first. */
struct udp_steer {
    uint32_t place;
    uint32_t qpns;
    uint32_t qpn[QP_INFO_GENERATIONS_MAX];
};

/* As many steps as a program for that many entries may have. */
#define UDP_STEER_BUCKETS        16u
#define UDP_STEER_STEPS(entries) (8u + (entries)*2u * QP_INFO_GENERATIONS_MAX + UDP_STEER_BUCKETS * 4u)

/* Writes the program; all other packets go to the first socket. Returns its length. */
uint16_t udp_steer_make(const struct udp_steer *entries, uint32_t count, struct sock_filter *steps);
/* Replaces the program of the port that the socket belongs to; there must be another socket on it, or must
 * have been. -LH_ESYSTEM, -LH_ENOMEM. */
int udp_steer_attach(int fd, const struct udp_steer *entries, uint32_t count);

#endif
