/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/host_drops.h"

#include <stdio.h>
#include <sys/socket.h>

#include <linux/sock_diag.h>

uint64_t host_drops_of_socket(int fd)
{
    uint32_t counters[SK_MEMINFO_VARS] = {0};
    socklen_t bytes = sizeof counters;
    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, counters, &bytes) != 0)
        return 0;
    return bytes >= (SK_MEMINFO_DROPS + 1) * sizeof counters[0] ? counters[SK_MEMINFO_DROPS] : 0;
}

uint64_t host_drops_of_stack(void)
{
    FILE *file = fopen("/proc/net/softnet_stat", "re");
    uint64_t sum = 0;
    char line[512];
    unsigned dropped;
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL) /* a line a CPU */
        if (sscanf(line, "%*x %x", &dropped) == 1)
            sum += dropped;
    fclose(file);
    return sum;
}
