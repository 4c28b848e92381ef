/*
 * starts.h - when flows start: by time, or when all that they wait for has ended.
 *
 * Nodes are flows and tasks (netsim/base/dependencies.h). A node that is ready, or due, is taken once; who
 * takes a task says when it has ended, at once. Of nodes that are due at the same time flows by time come
 * first, then what waited, in the order of numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TRANSPORT_STARTS_H
#define LH_NETSIM_TRANSPORT_STARTS_H

#include "netsim/base/flow_list.h"

#define NETSIM_NO_NODE UINT32_MAX

struct netsim_start {
    netsim_time at_ps;
    uint32_t node;
};

struct netsim_starts {
    const struct netsim_flow_list *list;
    uint32_t *waits;            /* of each node of the graph: for how many others, still */
    struct netsim_start *ready; /* a heap: those that wait for none, and were not taken */
    uint32_t ready_count;
    uint32_t next_timed;
    bool changed; /* something became ready since this was last reset */
};

/* The list stays as it is, and sorted. */
void netsim_starts_init(struct netsim_starts *starts, const struct netsim_flow_list *list,
                        struct netsim_arena *arena);
/* When the next node is due; NETSIM_NEVER: none will be by itself. */
netsim_time netsim_starts_next_ps(const struct netsim_starts *starts);
/* A node that is due; NETSIM_NO_NODE: none is. */
uint32_t netsim_starts_take(struct netsim_starts *starts, netsim_time now_ps);
/* What waits for the node waits no longer for it: once for each node. */
void netsim_starts_release(struct netsim_starts *starts, uint32_t node, netsim_time now_ps);

static inline bool netsim_starts_is_task(const struct netsim_starts *starts, uint32_t node)
{
    return node >= starts->list->count;
}

#endif
