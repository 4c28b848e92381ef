/*
 * workload.h - draws the flows of a simulation from its configuration: Poisson arrivals, size distributions,
 * collectives; sources and destinations of flows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_WORKLOAD_H
#define LH_NETSIM_WORKLOAD_WORKLOAD_H

#include "base/prng.h"
#include "collective/schedule.h"
#include "netsim/base/flow_list.h"
#include "netsim/base/netsim_config.h"
#include "netsim/base/netsim_time.h"
#include "netsim/engine/network.h"

/* ---- pairs ----------------------------------------------------------------------------------------- */

/*
 * Sources and destinations of a workload: host groups, and transfers of sites, "a>c, b>c=2".
 */

/* Reads a list of FROM>TO or FROM>TO=TIMES, where sites are letters from a on; "none": an empty one. *pairs
 * stays as it is when that fails: -LH_EINVAL or -LH_ERANGE with key, value and remedy in lh_last_error(). */
int netsim_pairs_read(const char *key, const char *value, struct netsim_pairs *pairs);

/* ---- host groups ----------------------------------------------------------------------------------- */

/*
 * Hosts by group, for who talks to whom (workload.matrix): one group of all, the two halves
 * or first site and rest, or the sites.
 */

#define NETSIM_GROUPS_MAX 256u /* a site is 8 bits */

struct netsim_host_groups {
    enum netsim_matrix matrix;
    const struct netsim_graph *graph;
    uint32_t *order;                       /* hosts by group, for all of them; the caller's */
    uint32_t first[NETSIM_GROUPS_MAX + 1]; /* of each group, in order; the last: how many hosts there are */
    uint32_t senders; /* number of hosts, from the first of order on: all, or with across the first group */
};

/* Sets all but the order. -LH_EINVAL with workload.matrix named: a group without enough hosts. */
int netsim_host_groups_count(struct netsim_host_groups *groups, enum netsim_matrix matrix,
                             const struct netsim_graph *graph);
/* After that, with memory for it: sets the order. */
void netsim_host_groups_sort(struct netsim_host_groups *groups);

uint32_t netsim_host_group(const struct netsim_host_groups *groups, uint32_t host);

/* ---- transfers ------------------------------------------------------------------------------------- */

/* The flows of a collective: the transfers of its schedule, step by step, cut between blocks. */

struct transfers {
    const struct schedule *schedule;
    struct schedule_shape shape;
    uint32_t together; /* blocks of a flow, at most */
};

/* What one member sends another in a step. Starts as {0}, or with the step that it begins at. */
struct transfer {
    uint32_t step;
    uint32_t from;
    uint32_t to;
    uint32_t first; /* blocks, as in struct schedule_transfer */
    uint32_t count;
    bool reduce;
    /* The rest of what the schedule sends at once, and its place there. */
    struct schedule_transfer rest;
    struct schedule_cursor cursor;
};

/* The next one, by step, sender and the schedule's own order. False: there are no more. */
bool transfers_next(const struct transfers *transfers, struct transfer *transfer);
/* How many there are, and how many blocks they carry together; of more than `most`, the first ones. */
uint32_t transfers_count(const struct transfers *transfers, uint32_t maximum, uint64_t *blocks);
/* Of a whole tensor of at most 2^44 bytes, which is shared out evenly among the blocks. */
uint64_t transfer_bytes(const struct transfers *transfers, const struct transfer *transfer, uint64_t bytes);

/* ---- kind ------------------------------------------------------------------------------------------ */

/*
 * What a kind of workload is given, and what all kinds check.
 *
 * Each kind takes its memory from the arena, draws, and fills the list, sorted by start; all return what
 * netsim_workload_build() does.
 */

struct netsim_workload {
    const struct netsim_workload_config *config;
    const struct netsim_graph *graph;
    const struct lh_prng *prng; /* forked for each component, never drawn from */
    struct netsim_arena *arena;
    struct netsim_flow_list *list;
    uint32_t *scratch; /* memory that only lasts until the list is made; NULL: of kinds that need none */
};

/* Components that draw, each from a fork of the generator: none shifts another. */
enum netsim_workload_sample {
    NETSIM_SAMPLE_PAIRS,
    NETSIM_SAMPLE_JITTER,
    NETSIM_SAMPLE_GAPS,
    NETSIM_SAMPLE_SOURCES,
    NETSIM_SAMPLE_DESTINATIONS,
    NETSIM_SAMPLE_SIZES,
};

/* 0; -LH_ERANGE: workload.bytes, or the number of flows, is out of range. */
int netsim_workload_check_bytes(const struct netsim_workload_config *config);
int netsim_workload_check_count(double flows);

/* ---- workload -------------------------------------------------------------------------------------- */

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
