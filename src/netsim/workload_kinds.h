/*
 * workload_kinds.h - the kinds of workload, for workload.c alone.
 *
 * Each takes what it needs from the arena, draws, and fills the list in, sorted by start. All return what
 * netsim_workload_build does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_KINDS_H
#define LH_NETSIM_WORKLOAD_KINDS_H

#include "netsim/workload.h"

/* What a workload is made of, and into which list. */
struct netsim_workload {
    const struct netsim_workload_config *config;
    const struct netsim_graph *graph;
    const struct lh_prng *prng; /* forked for each component, never drawn from */
    struct netsim_arena *arena;
    struct netsim_flow_list *list;
};

/* Which component draws: a fork of the generator each, so that none shifts another. */
enum netsim_workload_draw {
    NETSIM_DRAW_PAIRS,
    NETSIM_DRAW_JITTER,
    NETSIM_DRAW_GAPS,
    NETSIM_DRAW_SOURCES,
    NETSIM_DRAW_DESTINATIONS,
    NETSIM_DRAW_SIZES,
};

/* Permutation, incast and all-to-all. */
int netsim_workload_rounds(const struct netsim_workload *workload);
int netsim_workload_flow_text(const struct netsim_workload *workload);
int netsim_workload_poisson(const struct netsim_workload *workload);

/* -LH_ERANGE with workload.bytes named; 0. */
int netsim_workload_check_bytes(const struct netsim_workload_config *config);
/* The same for a number of flows. */
int netsim_workload_check_count(double flows);

#endif
