/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/run/across_sites.h"

#include "cli/perf/samples.h"
#include "cli/sim/scenario/figure.h"

#include <math.h>
#include <stdlib.h>

#define PS_PER_S 1e12

/* Of which flows, and until when they count. */
struct choice {
    bool across;   /* only those between sites */
    bool received; /* until the receiver has the last byte, not until the sender knows */
    enum cli_figure mean, p99;
};

static uint64_t end_of(const struct choice *choice, const struct lh_netsim_flow *flow)
{
    return choice->received ? flow->received_ps : flow->done_ps;
}

static void collect(const struct choice *choice, const struct lh_netsim *simulation, double *room,
                    double *value)
{
    struct lh_netsim_flow flow;
    uint64_t flows = lh_netsim_flows_count(simulation);
    size_t count = 0;
    for (uint64_t i = 0; i < flows && !lh_netsim_flow(simulation, i, &flow); i++)
        if (end_of(choice, &flow) != UINT64_MAX && (flow.across || !choice->across))
            room[count++] = (double)(end_of(choice, &flow) - flow.start_ps) / PS_PER_S;
    value[choice->mean] = value[choice->p99] = NAN;
    if (!count)
        return;
    cli_samples_sort(room, count);
    value[choice->mean] = cli_samples_mean(room, count);
    value[choice->p99] = cli_samples_percentile(room, count, 0.99);
}

int cli_across_collect(double *value, const struct lh_netsim *simulation)
{
    static const struct choice choices[] = {
        {false, true, CLI_FIGURE_RECEIVED_MEAN, CLI_FIGURE_RECEIVED_P99},
        {true, false, CLI_FIGURE_ACROSS_MEAN, CLI_FIGURE_ACROSS_P99},
        {true, true, CLI_FIGURE_ACROSS_RECEIVED_MEAN, CLI_FIGURE_ACROSS_RECEIVED_P99},
    };
    double *room = calloc((size_t)lh_netsim_flows_count(simulation) + 1, sizeof *room);
    if (!room)
        return -LH_ENOMEM;
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        collect(&choices[i], simulation, room, value);
    free(room);
    return 0;
}
