/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/run/observation.h"

#include "cli/perf/samples.h"
#include "cli/sim/scenario/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PS_PER_S 1e12

void cli_observation_open(struct cli_observation *observation, const struct cli_sim_output *output,
                          const struct lh_netsim *simulation)
{
    *observation = (struct cli_observation){.from_ps = output->from_ps, .to_ps = output->to_ps};
    if (*output->queues)
        cli_link_list_find(&observation->links, simulation, output->queues);
}

bool cli_observation_goes_on(const struct cli_observation *observation)
{
    return observation->from_ps != CLI_NO_END && observation->ended_ps < observation->to_ps;
}

static void read_flows(uint64_t *delivered, const struct lh_netsim *simulation)
{
    struct lh_netsim_flow flow;
    uint64_t flows = lh_netsim_flows_count(simulation);
    for (uint64_t i = 0; i < flows && !lh_netsim_flow(simulation, i, &flow); i++)
        delivered[i] = flow.delivered_bytes;
}

static int begin(struct cli_observation *observation, const struct lh_netsim *simulation, uint64_t now_ps)
{
    size_t flows = (size_t)lh_netsim_flows_count(simulation) + 1;
    observation->before = calloc(flows, sizeof *observation->before);
    observation->after = calloc(flows, sizeof *observation->after);
    if (!observation->before || !observation->after)
        return -LH_ENOMEM;
    read_flows(observation->before, simulation);
    observation->begun = true;
    observation->began_ps = now_ps;
    return 0;
}

static int add(struct cli_observation *observation, double bytes)
{
    if (observation->count == observation->room) {
        size_t room = 2 * observation->room + 1024;
        double *queues = realloc(observation->queues, room * sizeof *queues);
        if (!queues)
            return -LH_ENOMEM;
        observation->queues = queues;
        observation->room = room;
    }
    observation->queues[observation->count++] = bytes;
    return 0;
}

int cli_observation_sample(struct cli_observation *observation, const struct lh_netsim *simulation,
                           uint64_t now_ps)
{
    struct lh_netsim_link link;
    int code = 0;
    if (!cli_observation_goes_on(observation) || now_ps < observation->from_ps)
        return 0;
    if (!observation->begun)
        code = begin(observation, simulation, now_ps);
    for (unsigned i = 0; i < observation->links.count && !code; i++)
        if (!lh_netsim_link(simulation, observation->links.numbers[i], &link))
            code = add(observation, (double)link.queue_bytes);
    if (code)
        return code;
    read_flows(observation->after, simulation);
    observation->ended_ps = now_ps;
    return 0;
}

/* Jain's index, (sum of x)^2 / (n * sum of x^2), of the flows that were under way all the time: 1 when all
 * got the same, 1/n when one got everything. */
static double jain(const struct cli_observation *observation, const struct lh_netsim *simulation)
{
    struct lh_netsim_flow flow;
    double sum = 0, squares = 0, count = 0;
    uint64_t flows = lh_netsim_flows_count(simulation);
    for (uint64_t i = 0; i < flows && !lh_netsim_flow(simulation, i, &flow); i++) {
        if (flow.start_ps > observation->began_ps || flow.done_ps < observation->ended_ps)
            continue;
        double got = (double)(observation->after[i] - observation->before[i]);
        sum += got;
        squares += got * got;
        count++;
    }
    return squares > 0 ? sum * sum / (count * squares) : NAN;
}

/* Payload that all flows delivered, of what the links could carry. */
static double share(const struct cli_observation *observation, const struct lh_netsim *simulation)
{
    struct lh_netsim_link link;
    double bytes = 0, rate_bps = 0;
    double span_s = (double)(observation->ended_ps - observation->began_ps) / PS_PER_S;
    uint64_t flows = lh_netsim_flows_count(simulation);
    for (uint64_t i = 0; i < flows; i++)
        bytes += (double)(observation->after[i] - observation->before[i]);
    for (unsigned i = 0; i < observation->links.count; i++)
        if (!lh_netsim_link(simulation, observation->links.numbers[i], &link))
            rate_bps += (double)link.rate_bps;
    return span_s > 0 && rate_bps > 0 ? 8 * bytes / span_s / rate_bps : NAN;
}

void cli_observation_collect(struct cli_observation *observation, const struct lh_netsim *simulation,
                             double *value)
{
    value[CLI_FIGURE_JAIN] = observation->begun ? jain(observation, simulation) : NAN;
    value[CLI_FIGURE_SHARE] = observation->begun ? share(observation, simulation) : NAN;
    value[CLI_FIGURE_QUEUE_MEAN] = value[CLI_FIGURE_QUEUE_P99] = NAN;
    if (!observation->count)
        return;
    cli_samples_sort(observation->queues, observation->count);
    value[CLI_FIGURE_QUEUE_MEAN] = cli_samples_mean(observation->queues, observation->count);
    value[CLI_FIGURE_QUEUE_P99] = cli_samples_percentile(observation->queues, observation->count, 0.99);
}

void cli_observation_close(struct cli_observation *observation)
{
    free(observation->queues);
    free(observation->before);
    free(observation->after);
    *observation = (struct cli_observation){.from_ps = CLI_NO_END};
}
