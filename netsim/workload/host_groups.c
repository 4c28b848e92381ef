/*
 * host_groups.c - see host_groups.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/host_groups.h"

#include "base/error.h"

uint32_t netsim_host_group(const struct netsim_host_groups *groups, uint32_t host)
{
    const struct netsim_graph *graph = groups->graph;
    if (groups->matrix == NETSIM_UNIFORM)
        return 0;
    if (groups->matrix == NETSIM_ACROSS && graph->sites == 1)
        return host < graph->hosts / 2 ? 0 : 1;
    return graph->nodes[host].site;
}

int netsim_host_groups_count(struct netsim_host_groups *groups, enum netsim_matrix matrix,
                             const struct netsim_graph *graph)
{
    uint32_t hosts = graph->hosts;
    bool across = matrix == NETSIM_ACROSS;
    bool pairs = matrix == NETSIM_PAIRS;
    *groups = (struct netsim_host_groups){.matrix = matrix, .graph = graph};
    for (uint32_t host = 0; host < hosts; host++)
        groups->first[netsim_host_group(groups, host) + 1]++;
    for (uint32_t group = 0; group < NETSIM_GROUPS_MAX; group++) {
        if (!across && !pairs && groups->first[group + 1] == 1)
            return lh_fail(LH_EINVAL,
                           "workload.matrix: site %u has one host, which could send to none inside (give "
                           "each site two, or choose uniform)",
                           group);
        groups->first[group + 1] += groups->first[group];
    }
    groups->senders = across ? groups->first[1] : hosts;
    if (groups->senders == 0 || (across && groups->senders == hosts))
        return lh_fail(
            LH_EINVAL,
            "workload.matrix: across needs hosts in site 0 and in others (place them, or choose uniform)");
    return 0;
}

void netsim_host_groups_sort(struct netsim_host_groups *groups)
{
    uint32_t next[NETSIM_GROUPS_MAX];
    for (uint32_t group = 0; group < NETSIM_GROUPS_MAX; group++)
        next[group] = groups->first[group];
    for (uint32_t host = 0; host < groups->graph->hosts; host++)
        groups->order[next[netsim_host_group(groups, host)]++] = host;
}
