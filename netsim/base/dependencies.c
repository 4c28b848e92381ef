/*
 * dependencies.c - see dependencies.h.
 *
 * While edges are kept, first[node + 1] is where the node's next one goes; when all are, it is where the next
 * node's begin.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/base/dependencies.h"

void netsim_dependencies_init(struct netsim_dependencies *dependencies, uint32_t flows, uint32_t tasks,
                              uint64_t edges, struct netsim_arena *arena)
{
    size_t nodes = (size_t)flows + tasks;
    *dependencies = (struct netsim_dependencies){.flows = flows, .tasks = tasks};
    dependencies->waits = netsim_arena_take(arena, nodes, sizeof *dependencies->waits);
    dependencies->first = netsim_arena_take(arena, nodes + 2, sizeof *dependencies->first);
    dependencies->after = netsim_arena_take(arena, edges, sizeof *dependencies->after);
    dependencies->spans_ps = netsim_arena_take(arena, tasks, sizeof *dependencies->spans_ps);
}

void netsim_dependencies_count(struct netsim_dependencies *dependencies, uint32_t before, uint32_t after)
{
    assert(before != after && before < netsim_dependencies_nodes(dependencies) &&
           after < netsim_dependencies_nodes(dependencies));
    dependencies->first[before + 2]++;
    dependencies->waits[after]++;
}

void netsim_dependencies_lay_out(struct netsim_dependencies *dependencies)
{
    for (uint32_t node = 0; node < netsim_dependencies_nodes(dependencies); node++)
        dependencies->first[node + 2] += dependencies->first[node + 1];
}

void netsim_dependencies_keep(struct netsim_dependencies *dependencies, uint32_t before, uint32_t after)
{
    dependencies->after[dependencies->first[before + 1]++] = after;
}
