/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/host_drops.h"

#include <stdio.h>

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
