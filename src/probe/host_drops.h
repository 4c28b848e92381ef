/*
 * host_drops.h - what the kernel of this machine dropped of what it had received: no fault of the path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_HOST_DROPS_H
#define LH_PROBE_HOST_DROPS_H

#include <stdint.h>

/* Packets that found the backlog of a CPU full, before any socket, since the machine was started: of all
 * programs (second column of /proc/net/softnet_stat). 0 where the kernel does not report it. */
uint64_t host_drops_of_stack(void);

#endif
