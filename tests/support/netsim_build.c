/*
 * netsim_build.c - see netsim_build.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/netsim_build.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct netsim_topology_config topology_config(enum netsim_topology_kind kind)
{
    return (struct netsim_topology_config){.kind = kind,
                                           .rate_bps = 100000000000,
                                           .delay_ps = NETSIM_PS_PER_US,
                                           .core_delay_ps = NETSIM_NEVER,
                                           .long_delay_ps = 3 * NETSIM_PS_PER_MS};
}

/* Memory of the counted size. */
static struct netsim_arena real_arena(const struct netsim_arena *counted)
{
    struct netsim_arena arena = {.capacity_bytes = counted->used_bytes};
    assert(counted->used_bytes != SIZE_MAX);
    arena.base = aligned_alloc(64, counted->used_bytes);
    assert(arena.base != NULL);
    memset(arena.base, 0, counted->used_bytes);
    return arena;
}

int build_topology(const struct netsim_topology_config *config, struct netsim_graph *graph, void **memory)
{
    struct netsim_arena counting = {0};
    struct netsim_graph counted;
    *memory = NULL;
    int rc = netsim_topology_build(config, &counting, &counted);
    if (rc != 0)
        return rc;
    assert(counted.nodes == NULL && counted.cables == NULL && counted.routes == NULL);
    struct netsim_arena arena = real_arena(&counting);
    rc = netsim_topology_build(config, &arena, graph);
    if (rc != 0) {
        free(arena.base);
        return rc;
    }
    assert(arena.used_bytes == counting.used_bytes);
    assert(graph->hosts == counted.hosts && graph->nodes_count == counted.nodes_count);
    assert(graph->cables_count == counted.cables_count && graph->faults_count == counted.faults_count);
    *memory = arena.base;
    return 0;
}

int build_workload(const struct netsim_workload_config *config, const struct netsim_graph *graph,
                   uint64_t seed, struct netsim_flow_list *list, void **memory)
{
    struct netsim_arena counting = {0};
    struct netsim_flow_list counted;
    struct lh_prng prng;
    *memory = NULL;
    lh_prng_seed(&prng, seed);
    struct netsim_arena scratch = {0};
    int rc = netsim_workload_scratch(config, graph, &scratch);
    if (rc != 0)
        return rc;
    scratch = real_arena(&scratch);
    rc = netsim_workload_build(config, graph, &prng, scratch.base, &counting, &counted);
    if (rc != 0) {
        free(scratch.base);
        return rc;
    }
    assert(counted.flows == NULL);
    struct netsim_arena arena = real_arena(&counting);
    rc = netsim_workload_build(config, graph, &prng, scratch.base, &arena, list);
    free(scratch.base);
    assert(rc == 0 && arena.used_bytes == counting.used_bytes && list->count == counted.count);
    *memory = arena.base;
    return 0;
}
