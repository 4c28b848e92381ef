/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/perf/cpu_others.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static double own_seconds(int who)
{
    struct rusage usage;
    if (getrusage(who, &usage))
        return 0;
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void cli_cpu_mark(struct cli_cpu_mark *mark)
{
    /* user, nice, system, idle, iowait, irq, softirq, steal: proc(5) */
    unsigned long long times[8];
    double per_s = (double)sysconf(_SC_CLK_TCK);
    FILE *file = fopen("/proc/stat", "r");
    int found = file ? fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &times[0], &times[1],
                              &times[2], &times[3], &times[4], &times[5], &times[6], &times[7])
                     : 0;
    if (file)
        fclose(file);
    *mark = (struct cli_cpu_mark){.busy_s = -1};
    if (found != 8)
        return;
    for (unsigned i = 0; i < 8; i++)
        mark->total_s += (double)times[i] / per_s;
    /* Interrupts are left out: those of our own packets cannot be distinguished from those of others. */
    mark->busy_s = (double)(times[0] + times[1] + times[2] + times[7]) / per_s;
    mark->own_s = own_seconds(RUSAGE_SELF) + own_seconds(RUSAGE_CHILDREN);
}

double cli_cpu_others(const struct cli_cpu_mark *from, const struct cli_cpu_mark *to)
{
    double total = to->total_s - from->total_s;
    double others = to->busy_s - from->busy_s - (to->own_s - from->own_s);
    if (from->busy_s < 0 || to->busy_s < 0 || total <= 0 || others <= 0)
        return 0;
    return others < total ? others / total : 1;
}
