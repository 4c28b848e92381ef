/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/socket_drops.h"

#include <linux/sock_diag.h>
#include <sys/socket.h>

uint32_t socket_drops(int fd)
{
    uint32_t counters[SK_MEMINFO_VARS] = {0};
    socklen_t bytes = sizeof counters;
    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, counters, &bytes) != 0)
        return 0;
    return bytes >= (SK_MEMINFO_DROPS + 1) * sizeof counters[0] ? counters[SK_MEMINFO_DROPS] : 0;
}
