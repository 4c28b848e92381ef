/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/topology/topology.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/units.h>

#include "base/error.h"
#include "netsim/base/netsim_config.h"
#include "netsim/engine/network.h"

/* ---- dumbbell -------------------------------------------------------------------------------------- */

/* Two hosts with one cable, and the dumbbell: hosts on either side of a bottleneck. */

static int netsim_two_hosts_shape(const struct netsim_topology_config *config, struct netsim_shape *shape)
{
    (void)config;
    shape->hosts = 2;
    shape->cables = 1;
    return 0;
}

static void netsim_two_hosts_fill(struct netsim_graph_builder *builder)
{
    struct netsim_cable cable = netsim_host_cable(builder);
    cable.faults = builder->core_faults;
    netsim_build_hosts(builder, 2, 0);
    netsim_build_cable(builder, 0, 1, &cable);
}

static int netsim_dumbbell_shape(const struct netsim_topology_config *config, struct netsim_shape *shape)
{
    shape->hosts = 2 * (uint64_t)config->hosts;
    shape->switches = 2;
    shape->cables = shape->hosts + 1;
    return netsim_topology_check_count("topology.hosts", config->hosts, "hosts on each side of a dumbbell",
                                       NETSIM_PORTS_MAX - 1);
}

/* Ports of both switches: the hosts, then the bottleneck. */
static void netsim_dumbbell_fill(struct netsim_graph_builder *builder)
{
    static const char *const names[] = {"left", "right"};
    uint32_t side_hosts = builder->config->hosts;
    uint32_t switches[2];
    netsim_build_hosts(builder, 2 * side_hosts, 0);
    for (uint32_t side = 0; side < 2; side++) {
        struct netsim_route route = {.below_first = side * side_hosts,
                                     .below_count = side_hosts,
                                     .hosts_per_group = 1,
                                     .below_width = 1,
                                     .up_port = side_hosts,
                                     .up_width = 1};
        switches[side] = netsim_build_switch(builder, NETSIM_TIER_TOR, 0, &route, "%s", names[side]);
    }
    struct netsim_cable cable = netsim_host_cable(builder);
    for (uint32_t host = 0; host < 2 * side_hosts; host++)
        netsim_build_cable(builder, host, switches[host / side_hosts], &cable);
    struct netsim_cable bottleneck = netsim_core_cable(builder);
    netsim_build_cable(builder, switches[0], switches[1], &bottleneck);
}

/* ---- fat tree -------------------------------------------------------------------------------------- */

/*
 * The k-ary fat tree (Al-Fares et al., SIGCOMM 2008): by itself, or one of several datacenters.
 *
 * k pods of k/2 edge and k/2 aggregation switches, and (k/2)^2 cores; aggregation switch a of each pod has
 * the cores from a * k/2 on. Ports, in this order: of an edge its hosts, the aggregation switches of the pod;
 * of an aggregation switch the edges of the pod, its cores; of a core the pods, the switch above it if there
 * is one.
 *
 * Its parts are added in the order of their numbers: the hosts of all trees, then the switches, then the
 * cables.
 */

struct netsim_tree {
    uint32_t half; /* k/2: edges of a pod, aggregation switches of a pod, cores of an aggregation switch */
    uint32_t edge_hosts;
    uint32_t host_first;
    uint32_t edge_first; /* of all pods; then come all aggregation switches, then the cores */
    uint32_t aggregation_first;
    uint32_t core_first;
    unsigned site;
    bool has_dci;   /* each core has one more port, behind the others, for a switch above */
    char prefix[4]; /* of names: "", "a.", "b." */
};

static inline uint32_t netsim_tree_cores(const struct netsim_tree *tree)
{
    return tree->half * tree->half;
}

static inline uint32_t netsim_tree_hosts(const struct netsim_tree *tree)
{
    return 2 * tree->half * tree->half * tree->edge_hosts;
}

#define K_MAX 64u

static uint32_t pods(const struct netsim_tree *tree)
{
    return 2 * tree->half;
}

static uint32_t pod_hosts(const struct netsim_tree *tree)
{
    return tree->half * tree->edge_hosts;
}

/* -LH_ERANGE, with topology.k named; 0. */
static int netsim_tree_check_k(uint32_t k)
{
    if (k >= 2 && k <= K_MAX && k % 2 == 0)
        return 0;
    return lh_fail(LH_ERANGE, "topology.k %u: out of range (an even number, 2 to %u)", k, K_MAX);
}

/* Of one tree, without what is above its cores. */
static void netsim_tree_shape(uint32_t k, uint32_t edge_hosts, struct netsim_shape *shape)
{
    uint64_t half = k / 2;
    uint64_t pod_switches = k * 2 * half;
    shape->hosts = k * half * edge_hosts;
    shape->switches = pod_switches + half * half;
    /* Between edges and aggregation switches as many as between these and the cores. */
    shape->cables = shape->hosts + 2 * k * half * half;
}

/* Each sets where its nodes begin. */
static void netsim_tree_add_hosts(struct netsim_graph_builder *builder, struct netsim_tree *tree)
{
    tree->host_first = builder->nodes;
    netsim_build_hosts(builder, netsim_tree_hosts(tree), tree->site);
}

static void add_pod_switches(struct netsim_graph_builder *builder, struct netsim_tree *tree)
{
    tree->edge_first = builder->nodes;
    for (uint32_t i = 0; i < pods(tree) * tree->half; i++) {
        struct netsim_route route = {.below_first = tree->host_first + i * tree->edge_hosts,
                                     .below_count = tree->edge_hosts,
                                     .hosts_per_group = 1,
                                     .below_width = 1,
                                     .up_port = tree->edge_hosts,
                                     .up_width = tree->half};
        netsim_build_switch(builder, NETSIM_TIER_TOR, tree->site, &route, "%sp%u.edge%u", tree->prefix,
                            i / tree->half, i % tree->half);
    }
    tree->aggregation_first = builder->nodes;
    for (uint32_t i = 0; i < pods(tree) * tree->half; i++) {
        uint32_t pod = i / tree->half;
        struct netsim_route route = {.below_first = tree->host_first + pod * pod_hosts(tree),
                                     .below_count = pod_hosts(tree),
                                     .hosts_per_group = tree->edge_hosts,
                                     .below_width = 1,
                                     .up_port = tree->half,
                                     .up_width = tree->half};
        netsim_build_switch(builder, NETSIM_TIER_AGGREGATION, tree->site, &route, "%sp%u.agg%u",
                            tree->prefix, pod, i % tree->half);
    }
}

static void add_core_switches(struct netsim_graph_builder *builder, struct netsim_tree *tree)
{
    tree->core_first = builder->nodes;
    for (uint32_t core = 0; core < netsim_tree_cores(tree); core++) {
        struct netsim_route route = {.below_first = tree->host_first,
                                     .below_count = netsim_tree_hosts(tree),
                                     .hosts_per_group = pod_hosts(tree),
                                     .below_width = 1,
                                     .up_port = pods(tree),
                                     .up_width = tree->has_dci ? 1 : 0};
        netsim_build_switch(builder, NETSIM_TIER_CORE, tree->site, &route, "%score%u", tree->prefix, core);
    }
}

static void netsim_tree_add_switches(struct netsim_graph_builder *builder, struct netsim_tree *tree)
{
    add_pod_switches(builder, tree);
    add_core_switches(builder, tree);
}

/* All but those above the cores. Those between switches have the faults. */
static void netsim_tree_add_cables(struct netsim_graph_builder *builder, const struct netsim_tree *tree,
                                   uint32_t core_faults)
{
    struct netsim_cable cable = netsim_host_cable(builder);
    for (uint32_t i = 0; i < netsim_tree_hosts(tree); i++)
        netsim_build_cable(builder, tree->host_first + i, tree->edge_first + i / tree->edge_hosts, &cable);
    cable.faults = core_faults;
    /* half links up from each edge, to the aggregation switches of its pod. */
    for (uint32_t i = 0; i < pods(tree) * netsim_tree_cores(tree); i++) {
        uint32_t edge = i / tree->half;
        uint32_t aggregation = edge / tree->half * tree->half + i % tree->half;
        netsim_build_cable(builder, tree->edge_first + edge, tree->aggregation_first + aggregation, &cable);
    }
    /* half links up from each aggregation switch: those of a pod see each core once. */
    for (uint32_t i = 0; i < pods(tree) * netsim_tree_cores(tree); i++)
        netsim_build_cable(builder, tree->aggregation_first + i / tree->half,
                           tree->core_first + i % netsim_tree_cores(tree), &cable);
}

static int netsim_fat_tree_shape(const struct netsim_topology_config *config, struct netsim_shape *shape)
{
    int rc = netsim_tree_check_k(config->k);
    netsim_tree_shape(config->k, config->k / 2, shape);
    return rc;
}

static void netsim_fat_tree_fill(struct netsim_graph_builder *builder)
{
    uint32_t half = builder->config->k / 2;
    struct netsim_tree tree = {.half = half, .edge_hosts = half};
    netsim_tree_add_hosts(builder, &tree);
    netsim_tree_add_switches(builder, &tree);
    netsim_tree_add_cables(builder, &tree, builder->core_faults);
}

/* ---- leaf spine ------------------------------------------------------------------------------------ */

/*
 * Every leaf to every spine.
 *
 * Ports of a leaf: its hosts, then the spines. Ports of a spine: the leaves.
 */

static int netsim_leaf_spine_shape(const struct netsim_topology_config *config, struct netsim_shape *shape)
{
    int rc = netsim_topology_check_count("topology.leaves", config->leaves, "leaves", NETSIM_PORTS_MAX);
    if (rc == 0)
        rc = netsim_topology_check_count("topology.spines", config->spines, "spines", NETSIM_PORTS_MAX - 1);
    if (rc == 0)
        rc = netsim_topology_check_count("topology.hosts", config->hosts,
                                         "hosts below each leaf, which also has a port for each spine",
                                         NETSIM_PORTS_MAX - config->spines);
    shape->hosts = (uint64_t)config->leaves * config->hosts;
    shape->switches = (uint64_t)config->leaves + config->spines;
    shape->cables = shape->hosts + (uint64_t)config->leaves * config->spines;
    return rc;
}

static void netsim_leaf_spine_fill(struct netsim_graph_builder *builder)
{
    const struct netsim_topology_config *config = builder->config;
    uint32_t hosts = config->leaves * config->hosts;
    uint32_t spine_first = hosts + config->leaves;
    struct netsim_cable host_cable = netsim_host_cable(builder);
    struct netsim_cable core_cable = netsim_core_cable(builder);
    netsim_build_hosts(builder, hosts, 0);
    for (uint32_t leaf = 0; leaf < config->leaves; leaf++) {
        struct netsim_route route = {.below_first = leaf * config->hosts,
                                     .below_count = config->hosts,
                                     .hosts_per_group = 1,
                                     .below_width = 1,
                                     .up_port = config->hosts,
                                     .up_width = config->spines};
        netsim_build_switch(builder, NETSIM_TIER_TOR, 0, &route, "leaf%u", leaf);
    }
    for (uint32_t spine = 0; spine < config->spines; spine++) {
        struct netsim_route route = {
            .below_count = hosts, .hosts_per_group = config->hosts, .below_width = 1};
        netsim_build_switch(builder, NETSIM_TIER_CORE, 0, &route, "spine%u", spine);
    }
    for (uint32_t host = 0; host < hosts; host++)
        netsim_build_cable(builder, host, hosts + host / config->hosts, &host_cable);
    for (uint32_t leaf = 0; leaf < config->leaves; leaf++) {
        for (uint32_t spine = 0; spine < config->spines; spine++)
            netsim_build_cable(builder, hosts + leaf, spine_first + spine, &core_cable);
    }
}

/* ---- datacenters ----------------------------------------------------------------------------------- */

/*
 * Datacenters in a line, a long cable from each to the next.
 *
 * Each is a fat tree whose cores have one more port, to the one DCI switch of the site. A DCI switch in the
 * middle of the line has two long cables: what is for a site further on passes through it, and never through
 * the site's own cores. With relays, there is one at each end of each long cable, next to the DCI switch.
 *
 * Ports, in this order: of a DCI switch the cores, the cable to the site before, the cable to the site after;
 * of a relay its switch, the long cable.
 */

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

static int netsim_datacenters_shape(const struct netsim_topology_config *config, struct netsim_shape *shape)
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

static void netsim_datacenters_fill(struct netsim_graph_builder *builder)
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

/* ---- topology -------------------------------------------------------------------------------------- */

static const struct netsim_topology_entry kinds[] = {
    [NETSIM_TWO_HOSTS] = {netsim_two_hosts_shape, netsim_two_hosts_fill},
    [NETSIM_DUMBBELL] = {netsim_dumbbell_shape, netsim_dumbbell_fill},
    [NETSIM_LEAF_SPINE] = {netsim_leaf_spine_shape, netsim_leaf_spine_fill},
    [NETSIM_FAT_TREE] = {netsim_fat_tree_shape, netsim_fat_tree_fill},
    [NETSIM_TWO_DATACENTERS] = {netsim_datacenters_shape, netsim_datacenters_fill},
    [NETSIM_DATACENTERS] = {netsim_datacenters_shape, netsim_datacenters_fill},
};

/* Longest cable: an hour, as in the grammar of links. */
#define DELAY_MAX_PS ((netsim_time)LH_LINK_TIME_MAX * NETSIM_PS_PER_NS)

static int check_rate(const char *key, uint64_t rate_bps)
{
    char text[LH_FORMAT_MAX];
    if (rate_bps >= NETSIM_RATE_MIN && rate_bps <= NETSIM_RATE_MAX)
        return 0;
    return lh_fail(LH_ERANGE, "%s %s: out of range (1Mbit to 100Tbit)", key,
                   lh_format_rate((double)rate_bps, text, sizeof text));
}

static int check_delay(const char *key, netsim_time delay_ps)
{
    char text[LH_FORMAT_MAX];
    if (delay_ps <= DELAY_MAX_PS)
        return 0;
    return lh_fail(LH_ERANGE, "%s %s: out of range (at most an hour)", key,
                   lh_format_time((double)delay_ps / (double)NETSIM_PS_PER_S, text, sizeof text));
}

/* What is not used by this kind is checked too: a wrong value is wrong before it matters. */
static int check_cables(const struct netsim_topology_config *config)
{
    const struct lh_link_spec *faults = &config->faults;
    int rc = check_rate("topology.rate", config->rate_bps);
    if (rc == 0 && config->core_rate_bps != 0)
        rc = check_rate("topology.core_rate", config->core_rate_bps);
    if (rc == 0 && config->long_rate_bps != 0)
        rc = check_rate("topology.long_rate", config->long_rate_bps);
    if (rc == 0)
        rc = check_delay("topology.delay", config->delay_ps);
    if (rc == 0 && config->core_delay_ps != NETSIM_NEVER)
        rc = check_delay("topology.core_delay", config->core_delay_ps);
    if (rc == 0)
        rc = check_delay("topology.long_delay", config->long_delay_ps);
    if (rc == 0 && (faults->rate_bps != 0 || faults->delay_ns != 0))
        rc = lh_fail(LH_EINVAL, "topology.link has a rate or a delay: topology.rate and topology.delay set "
                                "these (give loss, burst, reorder, duplicate, corrupt, jitter, seed)");
    return rc;
}

int netsim_topology_build(const struct netsim_topology_config *config, struct netsim_arena *arena,
                          struct netsim_graph *graph)
{
    struct netsim_shape shape = {.sites = 1};
    *graph = (struct netsim_graph){0};
    int rc = check_cables(config);
    if (rc != 0)
        return rc;
    if (config->kind == NETSIM_TOPOLOGY_FILE)
        return netsim_topology_file_build(config, arena, graph);
    assert((size_t)config->kind < sizeof kinds / sizeof kinds[0]);
    const struct netsim_topology_entry *kind = &kinds[config->kind];
    rc = kind->shape(config, &shape);
    if (rc == 0)
        rc = netsim_topology_check_shape("topology.kind", &shape);
    if (rc != 0)
        return rc;
    bool faulty = !lh_link_is_none(&config->faults) || config->change_rate_bps != 0;
    graph->hosts = (uint32_t)shape.hosts;
    graph->nodes_count = (uint32_t)(shape.hosts + shape.switches);
    graph->cables_count = (uint32_t)shape.cables;
    graph->sites = shape.sites;
    graph->faults_count = faulty ? 1 : 0;
    if (!netsim_graph_take(graph, arena))
        return 0;
    if (faulty)
        graph->faults[0] = config->faults;
    struct netsim_graph_builder builder = {
        .config = config, .graph = graph, .core_faults = faulty ? 0 : NETSIM_NO_FAULTS};
    kind->fill(&builder);
    netsim_mark_borders(graph);
    assert(builder.nodes == graph->nodes_count && builder.cables == graph->cables_count);
    return 0;
}
