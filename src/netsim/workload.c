/*
 * workload.c - from a configuration to a list of flows: what all kinds have in common.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload.h"

#include <assert.h>

#include <longhaul/units.h>

#include "base/error.h"
#include "netsim/workload_kinds.h"

static int (*const kinds[])(const struct netsim_workload *workload) = {
    [NETSIM_PERMUTATION] = netsim_workload_rounds, [NETSIM_INCAST] = netsim_workload_rounds,
    [NETSIM_ALL_TO_ALL] = netsim_workload_rounds,  [NETSIM_FLOWS_FILE] = netsim_workload_flow_text,
    [NETSIM_POISSON] = netsim_workload_poisson,
};

int netsim_workload_check_bytes(const struct netsim_workload_config *config)
{
    char text[LH_FORMAT_MAX];
    if (config->bytes >= 1 && config->bytes <= NETSIM_FLOW_BYTES_MAX)
        return 0;
    return lh_fail(LH_ERANGE, "workload.bytes is %s: a flow has 1 byte to 16TiB",
                   lh_format_size(config->bytes, text, sizeof text));
}

int netsim_workload_check_count(double flows)
{
    if (flows <= NETSIM_FLOWS_MAX)
        return 0;
    return lh_fail(LH_ERANGE,
                   "workload.kind: it would have %.3g flows, at most %u; make it shorter or smaller", flows,
                   NETSIM_FLOWS_MAX);
}

int netsim_workload_build(const struct netsim_workload_config *config, const struct netsim_graph *graph,
                          const struct lh_prng *prng, struct netsim_arena *arena,
                          struct netsim_flow_list *list)
{
    struct netsim_workload workload = {config, graph, prng, arena, list};
    assert(graph->hosts >= 2 && (size_t)config->kind < sizeof kinds / sizeof kinds[0]);
    *list = (struct netsim_flow_list){0};
    int rc = kinds[config->kind](&workload);
    assert(rc != 0 || list->flows == NULL || netsim_flow_list_is_sorted(list));
    return rc;
}
