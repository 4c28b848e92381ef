/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/transport/netsim_flows.h"

#include <stdbool.h>
#include <string.h>

#include "netsim/base/flow_list.h"
#include "netsim/base/netsim_time.h"

/* ---- the heap ---------------------------------------------------------------------------------------- */

static bool is_before(const struct netsim_start *one, const struct netsim_start *other)
{
    return one->at_ps != other->at_ps ? one->at_ps < other->at_ps : one->node < other->node;
}

static void push(struct netsim_starts *starts, uint32_t node, netsim_time at_ps)
{
    const struct netsim_start start = {at_ps, node};
    uint32_t place = starts->ready_count++;
    assert(starts->ready_count <= netsim_dependencies_nodes(&starts->list->dependencies));
    for (; place > 0 && is_before(&start, &starts->ready[(place - 1) / 2]); place = (place - 1) / 2)
        starts->ready[place] = starts->ready[(place - 1) / 2];
    starts->ready[place] = start;
    starts->changed = true;
}

static uint32_t pop(struct netsim_starts *starts)
{
    uint32_t node = starts->ready[0].node;
    const struct netsim_start last = starts->ready[--starts->ready_count];
    uint32_t place = 0;
    for (uint32_t child = 1; child < starts->ready_count; child = 2 * place + 1) {
        if (child + 1 < starts->ready_count && is_before(&starts->ready[child + 1], &starts->ready[child]))
            child++;
        if (!is_before(&starts->ready[child], &last))
            break;
        starts->ready[place] = starts->ready[child];
        place = child;
    }
    starts->ready[place] = last;
    return node;
}

/* ---- nodes ------------------------------------------------------------------------------------------- */

/* Tasks are the nodes behind the flows that wait, in the graph, and behind all flows, outside. */
static uint32_t graph_node(const struct netsim_starts *starts, uint32_t node)
{
    const struct netsim_flow_list *list = starts->list;
    return node < list->dependents ? node : node - list->count + list->dependents;
}

static uint32_t node_of(const struct netsim_starts *starts, uint32_t graph_node)
{
    const struct netsim_flow_list *list = starts->list;
    return graph_node < list->dependents ? graph_node : graph_node - list->dependents + list->count;
}

static netsim_time span_ps(const struct netsim_starts *starts, uint32_t graph_node)
{
    const struct netsim_dependencies *dependencies = &starts->list->dependencies;
    return graph_node < dependencies->flows ? starts->list->flows[graph_node].start_ps
                                            : dependencies->spans_ps[graph_node - dependencies->flows];
}

void netsim_starts_init(struct netsim_starts *starts, const struct netsim_flow_list *list,
                        struct netsim_arena *arena)
{
    const struct netsim_dependencies *dependencies = &list->dependencies;
    uint32_t nodes = netsim_dependencies_nodes(dependencies);
    assert(dependencies->flows == list->dependents && list->dependents <= list->count);
    *starts = (struct netsim_starts){.list = list, .next_timed = list->dependents};
    starts->waits = netsim_arena_take(arena, nodes, sizeof *starts->waits);
    starts->ready = netsim_arena_take(arena, nodes, sizeof *starts->ready);
    if (arena->base == NULL || nodes == 0)
        return;
    memcpy(starts->waits, dependencies->waits, nodes * sizeof *starts->waits);
    for (uint32_t node = 0; node < nodes; node++) {
        if (starts->waits[node] == 0)
            push(starts, node_of(starts, node), span_ps(starts, node));
    }
}

static netsim_time timed_ps(const struct netsim_starts *starts)
{
    uint32_t next = starts->next_timed;
    return next < starts->list->count ? starts->list->flows[next].start_ps : NETSIM_NEVER;
}

static netsim_time ready_ps(const struct netsim_starts *starts)
{
    return starts->ready_count > 0 ? starts->ready[0].at_ps : NETSIM_NEVER;
}

netsim_time netsim_starts_next_ps(const struct netsim_starts *starts)
{
    return ready_ps(starts) < timed_ps(starts) ? ready_ps(starts) : timed_ps(starts);
}

uint32_t netsim_starts_take(struct netsim_starts *starts, netsim_time now_ps)
{
    netsim_time next_ps = netsim_starts_next_ps(starts);
    if (next_ps > now_ps)
        return NETSIM_NO_NODE;
    if (next_ps == timed_ps(starts))
        return starts->next_timed++;
    return pop(starts);
}

void netsim_starts_release(struct netsim_starts *starts, uint32_t node, netsim_time now_ps)
{
    const struct netsim_dependencies *dependencies = &starts->list->dependencies;
    if (!netsim_starts_is_task(starts, node) && node >= starts->list->dependents)
        return;
    uint32_t from = graph_node(starts, node);
    for (uint32_t i = dependencies->first[from]; i < dependencies->first[from + 1]; i++) {
        uint32_t after = dependencies->after[i];
        assert(starts->waits[after] > 0);
        if (--starts->waits[after] == 0)
            push(starts, node_of(starts, after), now_ps + span_ps(starts, after));
    }
}
