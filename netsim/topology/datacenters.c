/*
 * datacenters.c - see datacenters.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/topology/datacenters.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "netsim/topology/fat_tree.h"

struct line {
    struct netsim_tree trees[NETSIM_SITES_MAX];
    uint32_t dci[NETSIM_SITES_MAX];
    /* Where the long cable to the site after begins, and that from the site before ends: a relay, or the DCI
     * switch itself. */
    uint32_t after[NETSIM_SITES_MAX];
    uint32_t before[NETSIM_SITES_MAX];
    unsigned sites;
};

static uint32_t sites_of(const struct netsim_topology_config *config)
{
    return config->kind == NETSIM_TWO_DATACENTERS ? 2 : config->sites;
}

static uint32_t edge_hosts_of(const struct netsim_topology_config *config)
{
    return config->hosts != 0 ? config->hosts : config->k / 2;
}

static uint64_t long_rate_bps(const struct netsim_topology_config *config)
{
    uint64_t site_cores = (uint64_t)(config->k / 2) * (config->k / 2);
    return config->long_rate_bps != 0 ? config->long_rate_bps : config->rate_bps * site_cores;
}

int netsim_datacenters_shape(const struct netsim_topology_config *config, struct netsim_shape *shape)
{
    uint32_t edge_hosts = edge_hosts_of(config);
    uint32_t sites = sites_of(config);
    int rc = netsim_tree_check_k(config->k);
    if (rc == 0 && (sites < 2 || sites > NETSIM_SITES_MAX))
        rc = lh_fail(LH_ERANGE, "topology.sites %u: out of range (2 to %u)", sites, NETSIM_SITES_MAX);
    if (rc == 0)
        rc = netsim_topology_check_count("topology.hosts", edge_hosts, "hosts below each ToR switch",
                                         NETSIM_PORTS_MAX - config->k / 2);
    if (rc == 0 && long_rate_bps(config) > NETSIM_RATE_MAX)
        rc = lh_fail(LH_ERANGE,
                     "topology.long_rate is full: topology.rate (%" PRIu64
                     " bit/s) times the cores of a site (%u), exceeds 100Tbit (set it)",
                     config->rate_bps, config->k / 2 * (config->k / 2));
    netsim_tree_shape(config->k, edge_hosts, shape);
    uint64_t site_cores = (uint64_t)(config->k / 2) * (config->k / 2);
    uint64_t relays = config->relays ? 2 * ((uint64_t)sites - 1) : 0;
    shape->hosts *= sites;
    shape->switches = sites * (shape->switches + 1) + relays;
    shape->cables = sites * (shape->cables + site_cores) + sites - 1 + relays;
    shape->sites = sites;
    return rc;
}

/* ---- switches ---------------------------------------------------------------------------------------- */

static void add_dci(struct netsim_graph_builder *builder, struct line *line, unsigned site)
{
    const struct netsim_tree *tree = &line->trees[site];
    bool between = site > 0 && site + 1 < line->sites;
    struct netsim_route route = {.below_first = tree->host_first,
                                 .below_count = netsim_tree_hosts(tree),
                                 .hosts_per_group = netsim_tree_hosts(tree),
                                 .below_width = netsim_tree_cores(tree),
                                 .up_port = netsim_tree_cores(tree),
                                 .up_width = 1,
                                 .after_shift = between ? 1 : 0};
    line->dci[site] = netsim_build_switch(builder, NETSIM_TIER_DCI, site, &route, "%sdci", tree->prefix);
    line->after[site] = line->before[site] = line->dci[site];
}

/* `count` hosts from first on are on the switch's side of the relay; all others across the cable. */
static uint32_t add_relay(struct netsim_graph_builder *builder, const struct netsim_tree *tree,
                          uint32_t first, uint32_t count, const char *towards)
{
    struct netsim_route route = {.below_first = first,
                                 .below_count = count,
                                 .hosts_per_group = count,
                                 .below_width = 1,
                                 .up_port = 1,
                                 .up_width = 1};
    return netsim_build_switch(builder, NETSIM_TIER_RELAY, tree->site, &route, "%srelay%s", tree->prefix,
                               towards);
}

/* A site in the middle has two, named by the sites that they lead to. */
static void add_relays(struct netsim_graph_builder *builder, struct line *line, unsigned site)
{
    const struct netsim_tree *tree = &line->trees[site];
    uint32_t past = tree->host_first + netsim_tree_hosts(tree);
    bool between = site > 0 && site + 1 < line->sites;
    char after[] = {'-', (char)('a' + site + 1), '\0'};
    char before[] = {'-', (char)('a' + site - 1), '\0'};
    if (site + 1 < line->sites)
        line->after[site] = add_relay(builder, tree, 0, past, between ? after : "");
    if (site > 0)
        line->before[site] = add_relay(builder, tree, tree->host_first,
                                       builder->graph->hosts - tree->host_first, between ? before : "");
}

/* ---- cables ------------------------------------------------------------------------------------------ */

static void add_site_cables(struct netsim_graph_builder *builder, const struct line *line, unsigned site)
{
    const struct netsim_tree *tree = &line->trees[site];
    const struct netsim_cable cable = netsim_host_cable(builder);
    netsim_tree_add_cables(builder, tree, NETSIM_NO_FAULTS);
    for (uint32_t core = 0; core < netsim_tree_cores(tree); core++)
        netsim_build_cable(builder, tree->core_first + core, line->dci[site], &cable);
}

/* From one site to the next. What joins a switch and its relay is as fast, and has no delay. */
static void add_long_cable(struct netsim_graph_builder *builder, const struct line *line, unsigned site)
{
    const struct netsim_topology_config *config = builder->config;
    const struct netsim_cable cable = {.rate_bps = long_rate_bps(config),
                                       .delay_ps = config->long_delay_ps,
                                       .faults = builder->core_faults};
    const struct netsim_cable short_cable = {.rate_bps = cable.rate_bps, .faults = NETSIM_NO_FAULTS};
    assert(cable.rate_bps >= NETSIM_RATE_MIN);
    if (config->relays) {
        netsim_build_cable(builder, line->dci[site], line->after[site], &short_cable);
        netsim_build_cable(builder, line->dci[site + 1], line->before[site + 1], &short_cable);
    }
    netsim_build_cable(builder, line->after[site], line->before[site + 1], &cable);
}

void netsim_datacenters_fill(struct netsim_graph_builder *builder)
{
    const struct netsim_topology_config *config = builder->config;
    struct line line = {.sites = sites_of(config)};
    for (unsigned site = 0; site < line.sites; site++) {
        struct netsim_tree *tree = &line.trees[site];
        *tree = (struct netsim_tree){
            .half = config->k / 2, .edge_hosts = edge_hosts_of(config), .site = site, .has_dci = true};
        snprintf(tree->prefix, sizeof tree->prefix, "%c.", (char)('a' + site));
        netsim_tree_add_hosts(builder, tree);
    }
    for (unsigned site = 0; site < line.sites; site++) {
        netsim_tree_add_switches(builder, &line.trees[site]);
        add_dci(builder, &line, site);
    }
    for (unsigned site = 0; config->relays && site < line.sites; site++)
        add_relays(builder, &line, site);
    for (unsigned site = 0; site < line.sites; site++)
        add_site_cables(builder, &line, site);
    for (unsigned site = 0; site + 1 < line.sites; site++)
        add_long_cable(builder, &line, site);
}
