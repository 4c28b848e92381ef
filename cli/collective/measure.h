/*
 * measure.h - one collective at one size: checked, warmed up, measured, checked again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_COLLECTIVE_MEASURE_H
#define LH_CLI_COLLECTIVE_MEASURE_H

#include "cli/collective/kind.h"

#define CLI_COLLECTIVE_ITERATIONS_MAX 100000u

struct cli_measure {
    struct lh_group *group;
    struct lh_collective_options options;
    uint32_t iterations, warmup;
    void *in, *out;   /* large enough for the call */
    double *times_s;  /* one of each iteration */
    double *others_s; /* likewise */
};

struct cli_measured {
    const char *schedule; /* that ran, a literal */
    double mean_s, p50_s, p99_s;
    uint64_t wrong;       /* elements, at all ranks, of two runs; but for what is missing */
    double missing_share; /* of the results' bytes, mean of ranks and iterations */
};

/* All ranks call it, and get the same. An iteration begins with a barrier, which is not measured; its time is
 * the mean over the ranks of that from the call to the end. CLI_PROCEED, or the exit status after reporting
 * why. */
int cli_measure(const struct cli_measure *measure, const struct cli_call *call,
                struct cli_measured *measured);

#endif
