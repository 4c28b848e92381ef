/*
 * kind.h - what a kind of workload is given, and what all kinds check.
 *
 * Each kind takes its memory from the arena, draws, and fills the list, sorted by start; all return what
 * netsim_workload_build() does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_KIND_H
#define LH_NETSIM_WORKLOAD_KIND_H

#include "base/prng.h"
#include "netsim/base/config.h"
#include "netsim/base/flow_list.h"
#include "netsim/engine/graph.h"

struct netsim_workload {
    const struct netsim_workload_config *config;
    const struct netsim_graph *graph;
    const struct lh_prng *prng; /* forked for each component, never drawn from */
    struct netsim_arena *arena;
    struct netsim_flow_list *list;
    uint32_t *scratch; /* memory that only lasts until the list is made; NULL: of kinds that need none */
};

/* Components that draw, each from a fork of the generator: none shifts another. */
enum netsim_workload_draw {
    NETSIM_DRAW_PAIRS,
    NETSIM_DRAW_JITTER,
    NETSIM_DRAW_GAPS,
    NETSIM_DRAW_SOURCES,
    NETSIM_DRAW_DESTINATIONS,
    NETSIM_DRAW_SIZES,
};

/* 0; -LH_ERANGE: workload.bytes, or the number of flows, is out of range. */
int netsim_workload_check_bytes(const struct netsim_workload_config *config);
int netsim_workload_check_count(double flows);

#endif
