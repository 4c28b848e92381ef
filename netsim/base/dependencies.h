/*
 * dependencies.h - what waits for what: a graph of flows, and of tasks that send nothing.
 *
 * A node is ready when all that it waits for has ended. Flows have their numbers, tasks those behind them.
 * Built in two passes over the same edges: each is counted, then each is kept.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_BASE_DEPENDENCIES_H
#define LH_NETSIM_BASE_DEPENDENCIES_H

#include "netsim/base/arena.h"
#include "netsim/base/time.h"

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

#endif
