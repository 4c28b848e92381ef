/*
 * cpu_others.h - CPU time of other processes during a measurement.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PERF_CPU_OTHERS_H
#define LH_CLI_PERF_CPU_OTHERS_H

struct cli_cpu_mark {
    double busy_s;  /* of all CPUs, since they are up; below 0: cannot be known */
    double total_s; /* of all CPUs, idle or not */
    double own_s;   /* this process and its children that ended */
};

void cli_cpu_mark(struct cli_cpu_mark *mark);

/* Share (0 to 1) of all CPU time between the marks that others took; 0 when it cannot be known. */
double cli_cpu_others(const struct cli_cpu_mark *from, const struct cli_cpu_mark *to);

#endif
