/*
 * flow_list.h - the list of flows that a workload asks for: sizes, endpoints, starts, dependencies.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_BASE_FLOW_LIST_H
#define LH_NETSIM_BASE_FLOW_LIST_H

#include <stdbool.h>

#include "netsim/base/netsim_time.h"

/* ---- dependencies ---------------------------------------------------------------------------------- */

/*
 * What waits for what: a graph of flows, and of tasks that send nothing.
 *
 * A node is ready when all that it waits for has ended. Flows have their numbers, tasks those behind them.
 * Built in two passes over the same edges: each is counted, then each is kept.
 */

struct netsim_dependencies {
    uint32_t flows;        /* nodes 0 … flows - 1 */
    uint32_t tasks;        /* the nodes behind them */
    uint32_t *waits;       /* of each node: the number of those that it waits for */
    uint32_t *first;       /* of each node, and one more: where its part of `after` begins */
    uint32_t *after;       /* the nodes that wait for it */
    netsim_time *spans_ps; /* of each task: how long it takes, such as computing */
};

/* Takes the memory for these numbers of nodes and edges. The edges are to be counted now, unless the arena
 * only counts. */
void netsim_dependencies_init(struct netsim_dependencies *dependencies, uint32_t flows, uint32_t tasks,
                              uint64_t edges, struct netsim_arena *arena);
void netsim_dependencies_count(struct netsim_dependencies *dependencies, uint32_t before, uint32_t after);
/* All edges are counted: they are to be kept now. */
void netsim_dependencies_lay_out(struct netsim_dependencies *dependencies);
void netsim_dependencies_keep(struct netsim_dependencies *dependencies, uint32_t before, uint32_t after);

static inline uint32_t netsim_dependencies_nodes(const struct netsim_dependencies *dependencies)
{
    return dependencies->flows + dependencies->tasks;
}

/* ---- flow list ------------------------------------------------------------------------------------- */

#define NETSIM_FLOWS_MAX      16777216u
#define NETSIM_FLOW_BYTES_MAX ((uint64_t)1 << 44) /* 16 TiB of payload; and at most 2^31 packets */

struct netsim_flow_request {
    uint64_t bytes; /* of payload; at least 1 */
    netsim_time start_ps;
    uint32_t source; /* hosts; never the same */
    uint32_t destination;
};

/* Flows that wait for others, then those that start by time, in its order (equal starts in the order of
 * creation). */
struct netsim_flow_list {
    struct netsim_flow_request *flows;
    uint32_t count;
    uint32_t dependents;   /* the first ones */
    uint32_t of_operation; /* flows of each operation, one after the other; 0: there are none */
    bool in_order;         /* those of a host leave in the order of their numbers, else round robin */
    struct netsim_dependencies dependencies;
};

bool netsim_flow_list_is_sorted(const struct netsim_flow_list *list);
/* Puts the list in its order. Equal starts stay as they are. `scratch` holds `count` flows. */
void netsim_flow_list_sort(struct netsim_flow_list *list, struct netsim_flow_request *scratch);

#endif
