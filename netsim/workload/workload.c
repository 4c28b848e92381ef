/*
 * workload.c - see workload.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/workload.h"

#include <assert.h>

#include "netsim/workload/collective.h"
#include "netsim/workload/flow_file.h"
#include "netsim/workload/kind.h"
#include "netsim/workload/poisson.h"
#include "netsim/workload/rounds.h"

static int (*const kinds[])(const struct netsim_workload *workload) = {
    [NETSIM_PERMUTATION] = netsim_workload_rounds, [NETSIM_INCAST] = netsim_workload_rounds,
    [NETSIM_ALL_TO_ALL] = netsim_workload_rounds,  [NETSIM_FLOWS_FILE] = netsim_workload_flow_file,
    [NETSIM_POISSON] = netsim_workload_poisson,    [NETSIM_COLLECTIVE] = netsim_workload_collective,
};

int netsim_workload_scratch(const struct netsim_workload_config *config, const struct netsim_graph *graph,
                            struct netsim_arena *scratch)
{
    uint64_t numbers = 0;
    int rc =
        config->kind == NETSIM_COLLECTIVE ? netsim_workload_collective_scratch(config, graph, &numbers) : 0;
    if (rc == 0)
        netsim_arena_take(scratch, numbers, sizeof(uint32_t));
    return rc;
}

int netsim_workload_build(const struct netsim_workload_config *config, const struct netsim_graph *graph,
                          const struct lh_prng *prng, void *scratch, struct netsim_arena *arena,
                          struct netsim_flow_list *list)
{
    struct netsim_workload workload = {config, graph, prng, arena, list, scratch};
    assert(graph->hosts >= 2 && (size_t)config->kind < sizeof kinds / sizeof kinds[0]);
    *list = (struct netsim_flow_list){0};
    int rc = kinds[config->kind](&workload);
    assert(rc != 0 || list->flows == NULL || netsim_flow_list_is_sorted(list));
    return rc;
}
