/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/path/processors.h"

bool path_processors_divide(const cpu_set_t *all, cpu_set_t *path, cpu_set_t *ends)
{
    CPU_ZERO(path);
    CPU_ZERO(ends);
    if (CPU_COUNT(all) < 2)
        return false;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, all))
            CPU_SET(cpu, CPU_COUNT(path) == 0 ? path : ends);
    return true;
}

bool path_processors_take(cpu_set_t *ends)
{
    cpu_set_t all, path;
    CPU_ZERO(ends);
    if (sched_getaffinity(0, sizeof all, &all) || !path_processors_divide(&all, &path, ends))
        return false;
    if (sched_setaffinity(0, sizeof path, &path) == 0)
        return true;
    CPU_ZERO(ends);
    return false;
}

void path_processors_give(const cpu_set_t *ends)
{
    if (CPU_COUNT(ends) > 0)
        sched_setaffinity(0, sizeof *ends, ends);
}
