/*
 * operations.h - how long each operation of workload.kind = collective took.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_RUN_OPERATIONS_H
#define LH_CLI_SIM_RUN_OPERATIONS_H

#include <longhaul/netsim.h>

#include <stddef.h>

/* Durations of the operations that all of their flows have ended: from the end of the one before at all
 * hosts, or the first start if that is later, to the end at all hosts. */
struct cli_operations {
    double *seconds; /* NULL: none */
    size_t count;
};

/* 0, or -LH_ENOMEM. */
int cli_operations_collect(struct cli_operations *operations, const struct lh_netsim *simulation);
/* The figures OPERATION of values[CLI_FIGURES], of durations that it sorts; NaN when there are none. */
void cli_operations_sum_up(const struct cli_operations *operations, double *values);
void cli_operations_free(struct cli_operations *operations);

#endif
