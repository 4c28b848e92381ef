/*
 * graph.c - see graph.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/engine/graph.h"

bool netsim_cable_is_long(const struct netsim_graph *graph, const struct netsim_cable *cable)
{
    return netsim_is_switch(graph, cable->ends[0]) && netsim_is_switch(graph, cable->ends[1]) &&
           graph->nodes[cable->ends[0]].site != graph->nodes[cable->ends[1]].site;
}

void netsim_mark_borders(struct netsim_graph *graph)
{
    for (uint32_t c = 0; c < graph->cables_count; c++) {
        const struct netsim_cable *cable = &graph->cables[c];
        bool relay = netsim_is_relay(graph, cable->ends[0]) || netsim_is_relay(graph, cable->ends[1]);
        if (!relay && !netsim_cable_is_long(graph, cable))
            continue;
        for (unsigned end = 0; end < 2; end++)
            graph->nodes[cable->ends[end]].border = netsim_is_switch(graph, cable->ends[end]);
    }
}
