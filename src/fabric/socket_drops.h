/*
 * socket_drops.h - what the kernel dropped of what came for a socket.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_SOCKET_DROPS_H
#define LH_FABRIC_SOCKET_DROPS_H

#include <stdint.h>

/* How many datagrams found its receive buffer full since it was opened (SO_MEMINFO); wraps. 0 where the
 * kernel does not report it. */
uint32_t socket_drops(int fd);

#endif
