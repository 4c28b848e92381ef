/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/sim_results.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/netsim.h>
#include <longhaul/units.h>

#include "cli/perf/perf_messages.h"
#include "cli/sim/scenario.h"

/* ---- observation ----------------------------------------------------------------------------------- */

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

/* ---- operations ------------------------------------------------------------------------------------ */

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
    size_t maximum = 0;
    *operations = (struct cli_operations){0};
    for (uint64_t i = 0; i < flows && !lh_netsim_flow(simulation, i, &flow); i++)
        if (flow.operation != UINT32_MAX)
            maximum = flow.operation + 1;
    operations->seconds = maximum ? calloc(maximum, sizeof *operations->seconds) : NULL;
    if (maximum && !operations->seconds)
        return -LH_ENOMEM;
    for (uint64_t next = 0; operations->count < maximum; before_ps = end_ps) {
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

/* ---- across sites ---------------------------------------------------------------------------------- */

/* Completion times of flows between sites, and of all as their receivers see them. */

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

/* Sets the figures RECEIVED, ACROSS and ACROSS_RECEIVED of value[CLI_FIGURES]; NaN where no such flow is
 * done. 0, or -LH_ENOMEM. */
static int cli_across_collect(double *value, const struct lh_netsim *simulation)
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

/* ---- figures --------------------------------------------------------------------------------------- */

_Static_assert(CLI_GROUPS_MAX >= CLI_CLASSES_MAX, "both fit");

/* As it was most likely written: 10kB, not 9.77KiB. */
static void format_edge(uint64_t bytes, char *out, size_t size)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    unsigned unit = 0;
    for (; bytes && bytes % 1000 == 0 && unit < 4; unit++)
        bytes /= 1000;
    if (unit)
        snprintf(out, size, "%" PRIu64 "%s", bytes, units[unit]);
    else
        lh_format_size(bytes, out, size);
}

void cli_class_format(const struct cli_class *group, char *out, size_t size)
{
    char from[LH_FORMAT_MAX], to[LH_FORMAT_MAX];
    if (group->by_sites) {
        snprintf(out, size, "%c > %c", 'a' + (char)group->from_site, 'a' + (char)group->to_site);
        return;
    }
    format_edge(group->from_bytes, from, sizeof from);
    format_edge(group->to_bytes, to, sizeof to);
    if (!group->from_bytes && group->to_bytes == UINT64_MAX)
        snprintf(out, size, "all flows");
    else if (!group->from_bytes)
        snprintf(out, size, "< %s", to);
    else if (group->to_bytes == UINT64_MAX)
        snprintf(out, size, "≥ %s", from);
    else
        snprintf(out, size, "%s … %s", from, to);
}

/* ---- flows ---------------------------------------------------------------------------------------- */

static void sum_up(struct cli_class *group)
{
    size_t count = (size_t)group->done;
    group->fct_mean = group->fct_p50 = group->fct_p99 = group->fct_max = NAN;
    group->slowdown_mean = group->slowdown_p50 = group->slowdown_p99 = group->slowdown_max = NAN;
    if (!count)
        return;
    cli_samples_sort(group->fct, count);
    cli_samples_sort(group->slowdown, count);
    group->fct_mean = cli_samples_mean(group->fct, count);
    group->fct_p50 = cli_samples_percentile(group->fct, count, 0.5);
    group->fct_p99 = cli_samples_percentile(group->fct, count, 0.99);
    group->fct_max = group->fct[count - 1];
    group->slowdown_mean = cli_samples_mean(group->slowdown, count);
    group->slowdown_p50 = cli_samples_percentile(group->slowdown, count, 0.5);
    group->slowdown_p99 = cli_samples_percentile(group->slowdown, count, 0.99);
    group->slowdown_max = group->slowdown[count - 1];
}

static unsigned site_of(uint8_t site)
{
    return site < CLI_SITES_MAX ? site : CLI_SITES_MAX - 1;
}

static unsigned class_of(const struct cli_sim_output *output, const struct lh_netsim_flow *flow)
{
    unsigned group = 0;
    if (output->by_sites)
        return site_of(flow->source_site) * CLI_SITES_MAX + site_of(flow->destination_site);
    while (group < output->edges_count && flow->bytes >= output->edges[group])
        group++;
    return group;
}

static unsigned classes_of(const struct cli_sim_output *output)
{
    return output->by_sites ? CLI_GROUPS_MAX : output->edges_count + 1;
}

/* What it is a class of. */
static struct cli_class class_at(const struct cli_sim_output *output, unsigned number)
{
    if (output->by_sites)
        return (struct cli_class){.by_sites = true,
                                  .to_bytes = UINT64_MAX,
                                  .from_site = number / CLI_SITES_MAX,
                                  .to_site = number % CLI_SITES_MAX};
    return (struct cli_class){
        .from_bytes = number ? output->edges[number - 1] : 0,
        .to_bytes = number < output->edges_count ? output->edges[number] : UINT64_MAX,
    };
}

static bool is_done(const struct lh_netsim_flow *flow)
{
    return flow->done_ps != UINT64_MAX;
}

static void add_sample(struct cli_class *group, const struct lh_netsim_flow *flow)
{
    double took = (double)(flow->done_ps - flow->start_ps);
    group->fct[group->done] = took / PS_PER_S;
    group->slowdown[group->done] = flow->ideal_ps ? took / (double)flow->ideal_ps : 1;
    group->done++;
}

/* Counts the done flows of each group, so that each gets its part of the memory. */
static void count_classes(const struct lh_netsim *simulation, const struct cli_sim_output *output,
                          uint64_t *counts, uint64_t *done)
{
    struct lh_netsim_flow flow;
    uint64_t flows = lh_netsim_flows_count(simulation);
    for (uint64_t i = 0; i < flows && !lh_netsim_flow(simulation, i, &flow); i++)
        if (is_done(&flow)) {
            counts[class_of(output, &flow)]++;
            (*done)++;
        }
}

static int collect_flows(struct cli_figures *figures, const struct lh_netsim *simulation,
                         const struct cli_sim_output *output)
{
    struct lh_netsim_flow flow;
    uint64_t counts[CLI_GROUPS_MAX] = {0}, done = 0, flows = lh_netsim_flows_count(simulation);
    count_classes(simulation, output, counts, &done);
    double *room = figures->memory = calloc(4 * (size_t)done + 1, sizeof *room);
    if (!room)
        return -LH_ENOMEM;
    figures->classes_count = classes_of(output);
    figures->all = (struct cli_class){.to_bytes = UINT64_MAX, .fct = room, .slowdown = room + done};
    room += 2 * done;
    for (unsigned i = 0; i < figures->classes_count; i++) {
        figures->classes[i] = class_at(output, i);
        figures->classes[i].fct = room;
        figures->classes[i].slowdown = room + counts[i];
        room += 2 * counts[i];
    }
    for (uint64_t i = 0; i < flows && !lh_netsim_flow(simulation, i, &flow); i++)
        if (is_done(&flow)) {
            add_sample(&figures->all, &flow);
            add_sample(&figures->classes[class_of(output, &flow)], &flow);
        }
    sum_up(&figures->all);
    for (unsigned i = 0; i < figures->classes_count; i++)
        sum_up(&figures->classes[i]);
    return 0;
}

/* ---- the rest ------------------------------------------------------------------------------------- */

/* Between the first start and the last end, in seconds. A flow that is not done counts to the end of the
 * simulation: what the others did sooner is no rate at which all of the payload went. */
static double makespan_s(const struct lh_netsim *simulation, uint64_t now_ps)
{
    struct lh_netsim_flow flow;
    uint64_t first = UINT64_MAX, last = 0, flows = lh_netsim_flows_count(simulation);
    for (uint64_t i = 0; i < flows && !lh_netsim_flow(simulation, i, &flow); i++) {
        uint64_t end_ps = is_done(&flow) ? flow.done_ps : now_ps;
        first = flow.start_ps < first ? flow.start_ps : first;
        last = end_ps > last ? end_ps : last;
    }
    return last > first ? (double)(last - first) / PS_PER_S : 0;
}

static void collect_links(double *value, const struct lh_netsim *simulation)
{
    struct lh_netsim_link link;
    uint64_t queue_max = 0;
    double paused = 0;
    uint32_t hosts = lh_netsim_hosts_count(simulation);
    for (uint32_t i = 0; i < lh_netsim_links_count(simulation) && !lh_netsim_link(simulation, i, &link);
         i++) {
        paused += (double)link.paused_ps / PS_PER_S;
        /* Links are numbered node by node, hosts first: what a host has not sent is no queue of a
         * switch. */
        if (i >= hosts && link.queue_max_bytes > queue_max)
            queue_max = link.queue_max_bytes;
    }
    value[CLI_FIGURE_QUEUE_MAX] = (double)queue_max;
    value[CLI_FIGURE_PAUSED] = paused;
}

static double delivered_share(const struct lh_netsim *simulation)
{
    struct lh_netsim_flow flow;
    double bytes = 0, delivered = 0;
    uint64_t flows = lh_netsim_flows_count(simulation);
    for (uint64_t i = 0; i < flows && !lh_netsim_flow(simulation, i, &flow); i++)
        if (is_done(&flow)) {
            bytes += (double)flow.bytes;
            delivered += (double)flow.delivered_bytes;
        }
    return bytes > 0 ? delivered / bytes : NAN;
}

static void collect_totals(double *value, const struct lh_netsim *simulation, double wall_s, bool over)
{
    struct lh_netsim_totals totals;
    lh_netsim_totals(simulation, &totals);
    double span = makespan_s(simulation, totals.now_ps);
    value[CLI_FIGURE_FLOWS] = (double)totals.flows;
    value[CLI_FIGURE_DONE] = (double)totals.flows_done;
    value[CLI_FIGURE_FAILED] = (double)totals.flows_failed;
    value[CLI_FIGURE_STUCK] = over ? (double)(totals.flows - totals.flows_done - totals.flows_failed) : 0;
    value[CLI_FIGURE_MAKESPAN] = span > 0 ? span : NAN;
    value[CLI_FIGURE_GOODPUT] = span > 0 ? 8 * (double)totals.delivered_bytes / span : NAN;
    value[CLI_FIGURE_DELIVERED] = delivered_share(simulation);
    value[CLI_FIGURE_DROPPED] = (double)(totals.dropped_packets + totals.unroutable_packets);
    value[CLI_FIGURE_LOST] = (double)(totals.lost_packets + totals.corrupted_packets);
    value[CLI_FIGURE_MARKED] = (double)totals.marked_packets;
    value[CLI_FIGURE_PAUSES] = (double)totals.pauses;
    value[CLI_FIGURE_SIGNALS_LOST] = (double)totals.signals_lost;
    value[CLI_FIGURE_REPEATED] = (double)totals.repeated_packets;
    value[CLI_FIGURE_TIMEOUTS] = (double)totals.timeouts;
    value[CLI_FIGURE_VIRTUAL] = (double)totals.now_ps / PS_PER_S;
    value[CLI_FIGURE_HOPS] = (double)totals.hops;
    value[CLI_FIGURE_HOPS_RATE] = wall_s > 0 ? (double)totals.hops / wall_s : NAN;
    value[CLI_FIGURE_WALL] = wall_s;
    value[CLI_FIGURE_MEMORY] = (double)totals.memory_bytes;
}

int cli_figures_collect(struct cli_figures *figures, const struct lh_netsim *simulation,
                        const struct cli_sim_output *output, double wall_s, bool over)
{
    *figures = (struct cli_figures){0};
    int code = collect_flows(figures, simulation, output);
    if (!code)
        code = cli_across_collect(figures->value, simulation);
    if (!code)
        code = cli_operations_collect(&figures->operations, simulation);
    if (code) {
        cli_figures_free_samples(figures);
        return code;
    }
    const struct cli_class *all = &figures->all;
    double *value = figures->value;
    collect_totals(value, simulation, wall_s, over);
    collect_links(value, simulation);
    cli_operations_sum_up(&figures->operations, value);
    value[CLI_FIGURE_FCT_MEAN] = all->fct_mean;
    value[CLI_FIGURE_FCT_P50] = all->fct_p50;
    value[CLI_FIGURE_FCT_P99] = all->fct_p99;
    value[CLI_FIGURE_FCT_MAX] = all->fct_max;
    value[CLI_FIGURE_SLOWDOWN_MEAN] = all->slowdown_mean;
    value[CLI_FIGURE_SLOWDOWN_P50] = all->slowdown_p50;
    value[CLI_FIGURE_SLOWDOWN_P99] = all->slowdown_p99;
    value[CLI_FIGURE_SLOWDOWN_MAX] = all->slowdown_max;
    return 0;
}

void cli_figures_free_samples(struct cli_figures *figures)
{
    free(figures->memory);
    figures->memory = figures->all.fct = figures->all.slowdown = NULL;
    for (unsigned i = 0; i < figures->classes_count; i++)
        figures->classes[i].fct = figures->classes[i].slowdown = NULL;
}
