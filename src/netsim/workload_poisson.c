/*
 * workload_poisson.c - flows that arrive as a Poisson process.
 *
 * The hosts that send are independent Poisson processes. Their sum is one too, and each of its arrivals
 * belongs to a host with the chance of that host's share of the sum: so one process is drawn, in the order
 * of time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <math.h>

#include "base/decimal.h"
#include "base/error.h"
#include "netsim/cdf.h"
#include "netsim/host_groups.h"
#include "netsim/workload_kinds.h"

#define LOAD_MAX 10.0 /* more is most likely 50 for 50% */

struct poisson {
    const struct netsim_workload_config *config;
    const struct netsim_graph *graph;
    struct netsim_cdf sizes;
    bool has_sizes;
    struct netsim_host_groups groups;
    uint64_t *base_bps; /* of each host that sends: what its load is a share of */
    uint64_t base_max_bps;
    double flows_per_ps; /* of all senders */
};

/* Sets the rate that each sender's load is a share of, and the sum and the largest of these. */
static double sum_bases(struct poisson *poisson)
{
    const struct netsim_graph *graph = poisson->graph;
    uint64_t given_bps = poisson->config->load_base_bps;
    double sum_bps = 0;
    for (uint32_t end = 0; end < 2 * graph->cables_count; end++) {
        const struct netsim_cable *cable = &graph->cables[end / 2];
        uint32_t host = cable->ends[end % 2];
        uint64_t base_bps = given_bps != 0 ? given_bps : cable->rate_bps;
        bool sends = host < graph->hosts && (poisson->config->matrix != NETSIM_ACROSS ||
                                             netsim_host_group(&poisson->groups, host) == 0);
        if (!sends)
            continue;
        sum_bps += (double)base_bps;
        if (base_bps > poisson->base_max_bps)
            poisson->base_max_bps = base_bps;
        if (poisson->base_bps != NULL)
            poisson->base_bps[host] = base_bps;
    }
    return sum_bps;
}

/* A host that sends, as its place in the order: by its share of the sum. Hosts with the fastest cable are
 * taken at once. Others are drawn again with the chance that they lack, so a draw takes as many turns in
 * the mean as the fastest is faster than the mean. */
static uint32_t draw_sender(const struct poisson *poisson, struct lh_prng *prng)
{
    for (;;) {
        uint32_t place = (uint32_t)lh_prng_below(prng, poisson->groups.senders);
        double base_bps = (double)poisson->base_bps[poisson->groups.order[place]];
        if (lh_prng_chance(prng, base_bps / (double)poisson->base_max_bps))
            return place;
    }
}

static uint32_t draw_receiver(const struct poisson *poisson, uint32_t sender, struct lh_prng *prng)
{
    uint32_t hosts = poisson->graph->hosts;
    if (poisson->config->matrix == NETSIM_ACROSS)
        return poisson->groups.senders + (uint32_t)lh_prng_below(prng, hosts - poisson->groups.senders);
    uint32_t group = netsim_host_group(&poisson->groups, poisson->groups.order[sender]);
    uint32_t first = poisson->groups.first[group];
    uint32_t others = poisson->groups.first[group + 1] - first - 1;
    uint32_t place = first + (uint32_t)lh_prng_below(prng, others);
    return place < sender ? place : place + 1;
}

/* Draws when flows arrive, and all else where there is room for it. Sets the count. */
static int draw_flows(const struct poisson *poisson, const struct lh_prng *prng,
                      struct netsim_flow_list *list)
{
    struct lh_prng gaps = lh_prng_fork(prng, NETSIM_DRAW_GAPS);
    struct lh_prng sources = lh_prng_fork(prng, NETSIM_DRAW_SOURCES);
    struct lh_prng destinations = lh_prng_fork(prng, NETSIM_DRAW_DESTINATIONS);
    struct lh_prng sizes = lh_prng_fork(prng, NETSIM_DRAW_SIZES);
    double at_ps = 0;
    for (list->count = 0;; list->count++) {
        at_ps -= log1p(-lh_prng_double(&gaps)) / poisson->flows_per_ps;
        if (at_ps >= (double)poisson->config->duration_ps)
            return 0;
        if (list->count == NETSIM_FLOWS_MAX)
            return netsim_workload_check_count((double)NETSIM_FLOWS_MAX + 1);
        if (list->flows == NULL)
            continue;
        uint32_t sender = draw_sender(poisson, &sources);
        uint32_t receiver = draw_receiver(poisson, sender, &destinations);
        list->flows[list->count] = (struct netsim_flow_request){
            .bytes = poisson->has_sizes ? netsim_cdf_draw(&poisson->sizes, &sizes) : poisson->config->bytes,
            .start_ps = (netsim_time)at_ps,
            .source = poisson->groups.order[sender],
            .destination = poisson->groups.order[receiver]};
    }
}

static int check(const struct netsim_workload_config *config)
{
    if (!(config->load > 0 && config->load <= LOAD_MAX)) {
        char text[LH_DECIMAL_DOUBLE_MAX] = "no number";
        if (config->load >= 0 && isfinite(config->load))
            lh_decimal_format_double(config->load, text, sizeof text);
        return lh_fail(LH_ERANGE, "workload.load is %s: more than 0, and 10 at most; half the rate is 0.5",
                       text);
    }
    if (config->load_base_bps != 0 &&
        (config->load_base_bps < NETSIM_RATE_MIN || config->load_base_bps > NETSIM_RATE_MAX))
        return lh_fail(LH_ERANGE,
                       "workload.load_base is %llu bit/s: 1Mbit to 100Tbit, or 0 for the host's cable",
                       (unsigned long long)config->load_base_bps);
    if (config->duration_ps < 1 || config->duration_ps > NETSIM_TIME_MAX)
        return lh_fail(LH_ERANGE, "workload.duration is %s: more than 0, and 106 days at most",
                       config->duration_ps == 0 ? "0" : "too long");
    return 0;
}

/* Everything that draw_flows needs. Hosts are sorted where there is room for it. */
static int prepare(struct poisson *poisson, struct netsim_arena *arena)
{
    const struct netsim_workload_config *config = poisson->config;
    double mean_bytes = (double)config->bytes;
    int rc = check(config);
    if (rc == 0 && poisson->has_sizes)
        rc = netsim_cdf_read(&poisson->sizes, "workload.sizes", &config->sizes, arena);
    else if (rc == 0)
        rc = netsim_workload_check_bytes(config);
    if (rc == 0)
        rc = netsim_host_groups_count(&poisson->groups, config->matrix, poisson->graph);
    if (rc != 0)
        return rc;
    if (poisson->has_sizes)
        mean_bytes = poisson->sizes.mean_bytes;
    poisson->groups.order = netsim_arena_take(arena, poisson->graph->hosts, sizeof *poisson->groups.order);
    poisson->base_bps = netsim_arena_take(arena, poisson->graph->hosts, sizeof *poisson->base_bps);
    if (poisson->groups.order != NULL)
        netsim_host_groups_sort(&poisson->groups);
    poisson->flows_per_ps = config->load * sum_bases(poisson) / (8 * mean_bytes * (double)NETSIM_PS_PER_S);
    return netsim_workload_check_count(poisson->flows_per_ps * (double)config->duration_ps);
}

int netsim_workload_poisson(const struct netsim_workload *workload)
{
    struct netsim_flow_list *list = workload->list;
    struct poisson poisson = {.config = workload->config,
                              .graph = workload->graph,
                              .has_sizes = workload->config->sizes.data != NULL};
    assert(workload->graph->nodes != NULL && workload->graph->cables != NULL);
    int rc = prepare(&poisson, workload->arena);
    if (rc == 0)
        rc = draw_flows(&poisson, workload->prng, list);
    if (rc != 0)
        return rc;
    uint32_t count = list->count;
    list->flows = netsim_arena_take(workload->arena, count, sizeof *list->flows);
    if (workload->arena->base == NULL)
        return 0;
    rc = draw_flows(&poisson, workload->prng, list);
    assert(rc == 0 && list->count == count);
    return 0;
}
