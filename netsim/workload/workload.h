/*
 * workload.h - draws the flows of a simulation from its configuration: Poisson arrivals, size distributions,
 * collectives.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_WORKLOAD_H
#define LH_NETSIM_WORKLOAD_WORKLOAD_H

#include "base/prng.h"
#include "netsim/base/flow_list.h"
#include "netsim/base/netsim_config.h"
#include "netsim/base/netsim_time.h"
#include "netsim/engine/network.h"
#include "netsim/workload/workload_pairs.h"

/* Bytes of memory that the calls below need besides, aligned for numbers of 32 bits. Errors as below. */
int netsim_workload_scratch(const struct netsim_workload_config *config, const struct netsim_graph *graph,
                            struct netsim_arena *scratch);
/* The graph is complete, both times: poisson looks at sites and at the cables of hosts (others only at the
 * number of hosts, a collective at their sites). No flow may come of it: poisson with little load.
 *
 * Lays the list out in the arena (list->flows is NULL, and count is set, when the arena only counts: the
 * same draws are made both times). -LH_EINVAL or -LH_ERANGE with the key ("workload.load") or the line of
 * the file, the value and the remedy in lh_last_error(). */
int netsim_workload_build(const struct netsim_workload_config *config, const struct netsim_graph *graph,
                          const struct lh_prng *prng, void *scratch, struct netsim_arena *arena,
                          struct netsim_flow_list *list);

/* ---- poisson workload ------------------------------------------------------------------------------ */

/*
 * Flows that arrive as a Poisson process; or as one for each pair of sites, each drawn by itself,
 * so that none shifts another.
 */

int netsim_workload_poisson(const struct netsim_workload *workload);

/* ---- cdf ------------------------------------------------------------------------------------------- */

/*
 * How large flows are: a measured distribution, as points of its cumulative function.
 *
 * The text has a point a line, "SIZE CUMULATIVE": that share of all flows has at most that size. CUMULATIVE
 * is a probability (the last is 1) or percent (the last is 100). Neither may decrease. Between two points
 * sizes are uniform, so the function is linear; what the first point has (above 0) has just its size.
 *
 *     0       0
 *     10kB    0.15
 *     1MB     0.7
 *     30MB    1
 */

#define NETSIM_CDF_POINTS_MAX 65536u

struct netsim_cdf {
    double *bytes;      /* of each point: whole numbers */
    double *cumulative; /* 0 … 1 */
    uint32_t points;
    double mean_bytes; /* of what is drawn, exactly: whole bytes, at least 1 */
};

/* While the arena only counts, bytes and cumulative are NULL, and all else is right. `key` stands for
 * a text without a name in errors. -LH_EINVAL, -LH_ERANGE with the line named in lh_last_error(). */
int netsim_cdf_read(struct netsim_cdf *cdf, const char *key, const struct netsim_text *text,
                    struct netsim_arena *arena);
/* The size below which that share of all flows lies; 0 <= share < 1. */
double netsim_cdf_quantile(const struct netsim_cdf *cdf, double share);
/* One size: to the nearest byte, at least 1. */
uint64_t netsim_cdf_sample(const struct netsim_cdf *cdf, struct lh_prng *prng);

/* ---- collective workload --------------------------------------------------------------------------- */

/*
 * Collective operations of a group of hosts, one after the other: flows that wait for flows.
 *
 * The schedule (src/collective/schedule) says what is sent in which step. A flow starts when its sender has
 * the blocks that it carries. Members in several datacenters follow the map of these
 * where groups do.
 */

int netsim_workload_collective(const struct netsim_workload *workload);
/* Numbers of workload->scratch. -LH_EINVAL, -LH_ERANGE. */
int netsim_workload_collective_scratch(const struct netsim_workload_config *config,
                                       const struct netsim_graph *graph, uint64_t *numbers);

/* ---- rounds ---------------------------------------------------------------------------------------- */

/* Permutation, incast and all-to-all: the same number of flows in each round. */

int netsim_workload_rounds(const struct netsim_workload *workload);

#endif
