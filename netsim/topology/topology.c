/*
 * topology.c - see topology.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/topology/topology.h"

#include <assert.h>
#include <string.h>

#include <longhaul/units.h>

#include "base/error.h"
#include "netsim/topology/datacenters.h"
#include "netsim/topology/dumbbell.h"
#include "netsim/topology/fat_tree.h"
#include "netsim/topology/kind.h"
#include "netsim/topology/leaf_spine.h"
#include "netsim/topology/topology_file.h"

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
