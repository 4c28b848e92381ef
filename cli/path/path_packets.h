/*
 * network.h - the two ends of a path: network namespaces, each with a TUN device whose packets this
 * process reads and writes. They live as long as somebody has them open or lives in them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PATH_NETWORK_H
#define LH_CLI_PATH_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATH_DEVICE      "path0"
#define PATH_IPV4_PREFIX 24
#define PATH_IPV6_PREFIX 64

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
