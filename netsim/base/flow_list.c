/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/base/flow_list.h"

#include <stdbool.h>
#include <string.h>

#include "netsim/base/netsim_time.h"

/* ---- dependencies ---------------------------------------------------------------------------------- */

/*
 * While edges are kept, first[node + 1] is where the node's next one goes; when all are, it is where the next
 * node's begin.
 */

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

/* ---- flow list ------------------------------------------------------------------------------------- */

bool netsim_flow_list_is_sorted(const struct netsim_flow_list *list)
{
    for (uint32_t i = 1; i < list->count; i++) {
        if (list->flows[i].start_ps < list->flows[i - 1].start_ps)
            return false;
    }
    return true;
}

/* Merges the runs [0, middle) and [middle, end). The first is set aside; what is written never passes what
 * is still to be read of the second. */
static void merge(struct netsim_flow_request *flows, uint32_t middle, uint32_t end,
                  struct netsim_flow_request *scratch)
{
    uint32_t left = 0;
    uint32_t right = middle;
    memcpy(scratch, flows, middle * sizeof *flows);
    for (uint32_t at = 0; left < middle; at++) {
        bool take_right = right < end && flows[right].start_ps < scratch[left].start_ps;
        flows[at] = take_right ? flows[right++] : scratch[left++];
    }
}

void netsim_flow_list_sort(struct netsim_flow_list *list, struct netsim_flow_request *scratch)
{
    uint64_t count = list->count;
    for (uint64_t width = 1; width < count; width *= 2) {
        for (uint64_t start = 0; start + width < count; start += 2 * width) {
            uint64_t rest = count - start;
            uint64_t length = rest < 2 * width ? rest : 2 * width;
            merge(list->flows + start, (uint32_t)width, (uint32_t)length, scratch);
        }
    }
}
