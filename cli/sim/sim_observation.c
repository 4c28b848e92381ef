/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/run/figures.h"

#include "cli/perf/samples.h"
#include "cli/sim/run/across_sites.h"

#include <longhaul/units.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PS_PER_S 1e12

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
