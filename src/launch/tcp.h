/*
 * tcp.h - TCP sockets with deadlines, for the rendezvous. Nothing here blocks past its deadline, and no
 * call raises SIGPIPE.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_TCP_H
#define LH_LAUNCH_TCP_H

#include <longhaul/types.h>

struct addrinfo;

#define TCP_NAME_MAX 96u /* "[fe80::…%eth0]:65535" with room */

/* CLOCK_MONOTONIC. */
lh_time tcp_now(void);
/* now + timeout, LH_TIME_NEVER saturates. */
lh_time tcp_deadline(lh_time timeout_ns);
/* Waits until the descriptor is readable (or writable); below 0: for the deadline. 0, -LH_ETIMEDOUT,
 * -LH_ESYSTEM. */
int tcp_wait(int fd, bool writable, lh_time deadline);

/* Splits "HOST:PORT", "[HOST]:PORT" or ":PORT"; host gets "" for the last. -LH_EINVAL names what is wrong.
 */
int tcp_split(const char *where, char *host, size_t host_size, char *port, size_t port_size);
/* A connected, non-blocking socket. A name's addresses are tried side by side, each 250 ms after the one
 * before or as soon as that has failed, IPv6 and IPv4 in turns (RFC 8305): one that is silent costs 250 ms.
 * -LH_EADDR, -LH_ETIMEDOUT, -LH_EPEER (all refuse), -LH_ESYSTEM. */
int tcp_connect(const char *where, lh_time deadline, int *fd);
/* The same with the addresses of a list of getaddrinfo(3); where: for messages. */
int tcp_connect_any(const struct addrinfo *list, const char *where, lh_time deadline, int *fd);
/* A listening, non-blocking socket; "" as host takes every address, both families (IPv4 alone where the host
 * has no IPv6). -LH_EADDR. */
int tcp_listen(const char *where, int *fd, uint16_t *port);

/* Whether accept() failed with this errno since this process or host lacks descriptors or memory: the client
 * stays in the backlog, and would end every sleep at once. */
bool tcp_is_exhausted(int error);

/* An idle connection says something each minute, so that NAT and firewalls on the path do not forget it;
 * after two minutes without an answer it fails. */
void tcp_keep_alive(int fd);

/* Whole buffers. -LH_EPEER when the connection has failed. */
int tcp_write(int fd, const void *data, size_t bytes, lh_time deadline);
int tcp_read(int fd, void *data, size_t bytes, lh_time deadline);

/* "[::1]:4000", "127.0.0.1:4000" of either end; an IPv4-mapped IPv6 address is shown as IPv4. */
int tcp_local_name(int fd, char *out, size_t size);
int tcp_peer_name(int fd, char *out, size_t size);
/* The peer's host, in network order, IPv4 in the first 4 bytes; returns its family, 4 or 6; 0: not known. */
uint8_t tcp_peer_address(int fd, uint8_t bytes[16]);
/* Whether a connected socket's peer is on this host: its address is a loopback one, or this side's own. */
bool tcp_peer_is_local(int fd);
/* 0: it is; -LH_EHANDSHAKE, with that reason: it is not; -LH_EPEER: it has disconnected. */
int tcp_require_local(int fd, const char *reason);
/* "udp:[::1]" for the local address of a connected socket. */
int tcp_udp_device(int fd, char *out, size_t size);
/* The largest payload whose packets, longer by so many bytes than clear ones, fit the path of a connected
 * socket; 0 when not even the smallest does. */
uint32_t tcp_path_mtu(int fd, uint32_t extra_bytes);

#endif
