/*
 * poisson.c - see poisson.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/poisson.h"

#include <assert.h>
#include <math.h>

#include "base/decimal.h"
#include "base/error.h"
#include "netsim/workload/arrivals.h"
#include "netsim/workload/cdf.h"

#define LOAD_MAX 10.0 /* more is most likely 50 for 50% */

#define PAIRS_MAX (NETSIM_SITES_MAX * NETSIM_SITES_MAX)
/* Pairs fork their generators beyond enum netsim_workload_draw. */
#define DRAW_PAIR 0x100u
#define ANY_GROUP UINT32_MAX

/* One process, and from whom. */
struct part {
    struct netsim_arrivals arrivals;
    uint32_t group;  /* that sends; ANY_GROUP: all do */
    uint32_t number; /* of the pair; ANY_GROUP: there are no pairs */
};

struct poisson {
    const struct netsim_workload_config *config;
    const struct netsim_graph *graph;
    struct netsim_cdf sizes;
    bool has_sizes;
    struct netsim_host_groups groups;
    uint64_t *base_bps;  /* of each host: what its load is a share of */
    double flows_per_ps; /* of all parts */
    uint32_t parts_count;
    struct part parts[PAIRS_MAX];
};

/* ---- who sends how much ------------------------------------------------------------------------------ */

/* Sets the rate that each sender's load is a share of, and the largest of these. Returns their sum. */
static double sum_bases(struct poisson *poisson, struct part *part)
{
    const struct netsim_graph *graph = poisson->graph;
    uint64_t given_bps = poisson->config->load_base_bps;
    double sum_bps = 0;
    for (uint32_t end = 0; end < 2 * graph->cables_count; end++) {
        const struct netsim_cable *cable = &graph->cables[end / 2];
        uint32_t host = cable->ends[end % 2];
        uint64_t base_bps = given_bps != 0 ? given_bps : cable->rate_bps;
        bool sends = host < graph->hosts &&
                     (part->group == ANY_GROUP || netsim_host_group(&poisson->groups, host) == part->group);
        if (!sends)
            continue;
        sum_bps += (double)base_bps;
        if (base_bps > part->arrivals.base_max_bps)
            part->arrivals.base_max_bps = base_bps;
        if (poisson->base_bps != NULL)
            poisson->base_bps[host] = base_bps;
    }
    return sum_bps;
}

/* Who sends to whom is set; `times` the load. */
static void add_part(struct poisson *poisson, struct part *part, double times, double mean_bytes)
{
    struct netsim_arrivals *arrivals = &part->arrivals;
    double bps = poisson->config->load * times * sum_bases(poisson, part);
    arrivals->groups = &poisson->groups;
    arrivals->base_bps = poisson->base_bps;
    arrivals->flows_per_ps = bps / (8 * mean_bytes * (double)NETSIM_PS_PER_S);
    poisson->flows_per_ps += arrivals->flows_per_ps;
    assert(poisson->parts_count < PAIRS_MAX);
    poisson->parts[poisson->parts_count++] = *part;
}

static void add_matrix(struct poisson *poisson, double mean_bytes)
{
    bool across = poisson->config->matrix == NETSIM_ACROSS;
    uint32_t senders = poisson->groups.senders;
    struct part part = {.group = across ? 0 : ANY_GROUP, .number = ANY_GROUP};
    part.arrivals.senders = senders;
    if (across) {
        part.arrivals.receiver_first = senders;
        part.arrivals.receivers = poisson->graph->hosts - senders;
    }
    add_part(poisson, &part, 1, mean_bytes);
}

static uint32_t members(const struct poisson *poisson, uint32_t group)
{
    return poisson->groups.first[group + 1] - poisson->groups.first[group];
}

static int add_pair(struct poisson *poisson, uint32_t from, uint32_t to, double times, double mean_bytes)
{
    const uint32_t *first = poisson->groups.first;
    struct part part = {.group = from, .number = from * NETSIM_SITES_MAX + to};
    uint32_t least = from == to ? 2 : 1;
    if (members(poisson, from) < least || members(poisson, to) < least)
        return lh_fail(
            LH_EINVAL,
            "workload.pairs has %c>%c: site %c has %u hosts, site %c has %u, and each needs %u (leave it "
            "out, or raise topology.sites, or give the hosts of a topology file site=N)",
            'a' + (char)from, 'a' + (char)to, 'a' + (char)from, members(poisson, from), 'a' + (char)to,
            members(poisson, to), least);
    part.arrivals.sender_first = first[from];
    part.arrivals.senders = members(poisson, from);
    part.arrivals.receiver_first = first[to];
    part.arrivals.receivers = members(poisson, to);
    add_part(poisson, &part, times, mean_bytes);
    return 0;
}

static int add_pairs(struct poisson *poisson, double mean_bytes)
{
    const struct netsim_pairs *pairs = &poisson->config->pairs;
    for (uint32_t pair = 0; pair < PAIRS_MAX; pair++) {
        uint32_t from = pair / NETSIM_SITES_MAX;
        uint32_t to = pair % NETSIM_SITES_MAX;
        int rc = 0;
        if (pairs->times[from][to] > 0)
            rc = add_pair(poisson, from, to, pairs->times[from][to], mean_bytes);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* ---- the flows --------------------------------------------------------------------------------------- */

static void begin_parts(struct poisson *poisson, const struct lh_prng *prng)
{
    for (uint32_t i = 0; i < poisson->parts_count; i++) {
        struct part *part = &poisson->parts[i];
        struct lh_prng own = *prng;
        if (part->number != ANY_GROUP)
            own = lh_prng_fork(prng, DRAW_PAIR + part->number);
        netsim_arrivals_begin(&part->arrivals, &own);
    }
}

static struct netsim_arrivals *earliest(struct poisson *poisson)
{
    struct netsim_arrivals *first = &poisson->parts[0].arrivals;
    for (uint32_t i = 1; i < poisson->parts_count; i++)
        if (poisson->parts[i].arrivals.at_ps < first->at_ps)
            first = &poisson->parts[i].arrivals;
    return first;
}

static struct netsim_flow_request draw_flow(const struct poisson *poisson, struct netsim_arrivals *arrivals)
{
    struct netsim_flow_request flow = {.bytes = poisson->config->bytes,
                                       .start_ps = (netsim_time)arrivals->at_ps};
    if (poisson->has_sizes)
        flow.bytes = netsim_cdf_draw(&poisson->sizes, &arrivals->sizes);
    netsim_arrivals_hosts(arrivals, &flow.source, &flow.destination);
    return flow;
}

/* Draws when flows arrive, and all else unless the arena only counts. Sets the count. */
static int draw_flows(struct poisson *poisson, const struct lh_prng *prng, struct netsim_flow_list *list)
{
    begin_parts(poisson, prng);
    for (list->count = 0;; list->count++) {
        struct netsim_arrivals *arrivals = earliest(poisson);
        if (arrivals->at_ps >= (double)poisson->config->duration_ps)
            return 0;
        if (list->count == NETSIM_FLOWS_MAX)
            return netsim_workload_check_count((double)NETSIM_FLOWS_MAX + 1);
        if (list->flows != NULL)
            list->flows[list->count] = draw_flow(poisson, arrivals);
        netsim_arrivals_next(arrivals);
    }
}

/* ---- set-up ------------------------------------------------------------------------------------------ */

static int check(const struct netsim_workload_config *config)
{
    if (!(config->load > 0 && config->load <= LOAD_MAX)) {
        char text[LH_DECIMAL_DOUBLE_MAX] = "no number";
        if (config->load >= 0 && isfinite(config->load))
            lh_decimal_format_double(config->load, text, sizeof text);
        return lh_fail(LH_ERANGE,
                       "workload.load %s: out of range (above 0, at most 10; half the rate is 0.5)", text);
    }
    if (config->load_base_bps != 0 &&
        (config->load_base_bps < NETSIM_RATE_MIN || config->load_base_bps > NETSIM_RATE_MAX))
        return lh_fail(
            LH_ERANGE,
            "workload.load_base %llu bit/s: out of range (1Mbit to 100Tbit, or 0 for the host's cable)",
            (unsigned long long)config->load_base_bps);
    if (config->duration_ps < 1 || config->duration_ps > NETSIM_TIME_MAX)
        return lh_fail(LH_ERANGE, "workload.duration %s: out of range (above 0, at most 106 days)",
                       config->duration_ps == 0 ? "0" : "too long");
    return 0;
}

/* Everything that draw_flows needs. Hosts are sorted unless the arena only counts. */
static int prepare(struct poisson *poisson, struct netsim_arena *arena)
{
    const struct netsim_workload_config *config = poisson->config;
    enum netsim_matrix matrix = config->pairs.any ? NETSIM_PAIRS : config->matrix;
    double mean_bytes = (double)config->bytes;
    int rc = check(config);
    if (rc == 0 && poisson->has_sizes)
        rc = netsim_cdf_read(&poisson->sizes, "workload.sizes", &config->sizes, arena);
    else if (rc == 0)
        rc = netsim_workload_check_bytes(config);
    if (rc == 0)
        rc = netsim_host_groups_count(&poisson->groups, matrix, poisson->graph);
    if (rc != 0)
        return rc;
    if (poisson->has_sizes)
        mean_bytes = poisson->sizes.mean_bytes;
    poisson->groups.order = netsim_arena_take(arena, poisson->graph->hosts, sizeof *poisson->groups.order);
    poisson->base_bps = netsim_arena_take(arena, poisson->graph->hosts, sizeof *poisson->base_bps);
    if (poisson->groups.order != NULL)
        netsim_host_groups_sort(&poisson->groups);
    if (config->pairs.any)
        rc = add_pairs(poisson, mean_bytes);
    else
        add_matrix(poisson, mean_bytes);
    if (rc != 0)
        return rc;
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
