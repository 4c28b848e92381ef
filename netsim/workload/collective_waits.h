/*
 * collective_waits.h - what the flows of a collective wait for: those before them that brought their
 * sender the blocks that they carry.
 *
 * A block that several flows are summed up into has arrived with the last of them: a *join*, a task that
 * waits for two. A flow of a later operation waits for its sender to begin it, too, and a member begins one
 * when it has received everything of the one before, and computed: a task.
 *
 * Or, by steps, a flow waits for everything that its sender receives in the steps before. There are no joins
 * then, but a task for each member and step.
 *
 * Built in passes over the same walk: joins and edges are counted, then edges by node, then they are kept.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_COLLECTIVE_WAITS_H
#define LH_NETSIM_WORKLOAD_COLLECTIVE_WAITS_H

#include "netsim/base/dependencies.h"
#include "netsim/workload/transfers.h"

struct collective_waits {
    const struct transfers *transfers;
    uint32_t operations;
    uint32_t flows; /* of one operation */
    bool by_steps;
    uint32_t *holders; /* collective_waits_places(); what brought each block to each place */
    /* Counted: */
    uint32_t joins; /* of one operation; by steps: tasks of members but those that begin it */
    uint64_t edges; /* of all */
    /* NULL: they are only counted. */
    struct netsim_dependencies *graph;
    bool keeps;
};

/* Numbers that `holders` has: of each member its blocks, of an all-to-all each block of each row. */
uint64_t collective_waits_places(const struct transfers *transfers);
/* Sets joins and edges. */
void collective_waits_count(struct collective_waits *waits);
uint32_t collective_waits_tasks(const struct collective_waits *waits);
/* Of those tasks: the one with which a member begins an operation. */
uint32_t collective_waits_begin(const struct collective_waits *waits, uint32_t operation, uint32_t member);
/* Counts the edges of a graph, lays it out and keeps them. */
void collective_waits_fill(struct collective_waits *waits, struct netsim_dependencies *graph);

#endif
