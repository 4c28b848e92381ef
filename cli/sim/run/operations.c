/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/run/operations.h"

#include "cli/perf/samples.h"
#include "cli/sim/scenario/figure.h"

#include <math.h>
#include <stdlib.h>

#define PS_PER_S 1e12

static uint64_t later(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

/* Flows of an operation stand together. Its first start and last end, from flow `next` on; that of the next
 * operation. An end of UINT64_MAX: it has not ended. */
static uint64_t next_operation(const struct lh_netsim *simulation, uint64_t next, uint64_t *start_ps,
                               uint64_t *end_ps)
{
    struct lh_netsim_flow first, flow;
    *start_ps = UINT64_MAX;
    *end_ps = 0;
    if (lh_netsim_flow(simulation, next, &first))
        return next;
    for (uint64_t flows = lh_netsim_flows_count(simulation);
         next < flows && !lh_netsim_flow(simulation, next, &flow) && flow.operation == first.operation;
         next++) {
        *start_ps = flow.start_ps < *start_ps ? flow.start_ps : *start_ps;
        *end_ps = later(flow.received_ps, *end_ps);
    }
    return next;
}

int cli_operations_collect(struct cli_operations *operations, const struct lh_netsim *simulation)
{
    struct lh_netsim_flow flow;
    uint64_t flows = lh_netsim_flows_count(simulation), start_ps, end_ps = 0, before_ps = 0;
    size_t most = 0;
    *operations = (struct cli_operations){0};
    for (uint64_t i = 0; i < flows && !lh_netsim_flow(simulation, i, &flow); i++)
        if (flow.operation != UINT32_MAX)
            most = flow.operation + 1;
    operations->seconds = most ? calloc(most, sizeof *operations->seconds) : NULL;
    if (most && !operations->seconds)
        return -LH_ENOMEM;
    for (uint64_t next = 0; operations->count < most; before_ps = end_ps) {
        next = next_operation(simulation, next, &start_ps, &end_ps);
        if (end_ps == UINT64_MAX)
            break;
        operations->seconds[operations->count++] = (double)(end_ps - later(start_ps, before_ps)) / PS_PER_S;
    }
    return 0;
}

void cli_operations_sum_up(const struct cli_operations *operations, double *values)
{
    size_t count = operations->count;
    double *seconds = operations->seconds;
    values[CLI_FIGURE_OPERATION_MEAN] = values[CLI_FIGURE_OPERATION_P50] =
        values[CLI_FIGURE_OPERATION_P99] = values[CLI_FIGURE_OPERATION_MAX] = NAN;
    if (!count)
        return;
    cli_samples_sort(seconds, count);
    values[CLI_FIGURE_OPERATION_MEAN] = cli_samples_mean(seconds, count);
    values[CLI_FIGURE_OPERATION_P50] = cli_samples_percentile(seconds, count, 0.5);
    values[CLI_FIGURE_OPERATION_P99] = cli_samples_percentile(seconds, count, 0.99);
    values[CLI_FIGURE_OPERATION_MAX] = seconds[count - 1];
}

void cli_operations_free(struct cli_operations *operations)
{
    free(operations->seconds);
    *operations = (struct cli_operations){0};
}
