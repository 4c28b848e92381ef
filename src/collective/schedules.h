/*
 * schedules.h - all schedules of collectives, and their table.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULES_H
#define LH_COLLECTIVE_SCHEDULES_H

#include "collective/schedule.h"

extern const struct schedule ring_allreduce;
extern const struct schedule ring_reduce_scatter;
extern const struct schedule ring_allgather;

/* ---- chain ----------------------------------------------------------------------------------------- */

/* Each rank passes each block to the next one as soon as it has it (RDMC 4.3, chain send). */

extern const struct schedule chain_broadcast;
extern const struct schedule chain_reduce;

/* ---- pairwise -------------------------------------------------------------------------------------- */

/* All-to-all in which each step pairs each rank with one to send to and one to receive from. */

extern const struct schedule pairwise_alltoall;

/* ---- direct ---------------------------------------------------------------------------------------- */

/* All-reduce of few ranks in one step: each sends all that it has to each other one. */

extern const struct schedule direct_allreduce;

/* ---- dissemination --------------------------------------------------------------------------------- */

/*
 * Barrier: in each step everybody reports all that it has learned of, at twice the
 * distance of the step before (Hensgen, Finkel and Manber 1988).
 */

extern const struct schedule dissemination_barrier;

/* ---- sequential ------------------------------------------------------------------------------------ */

/* The root sends everything to one rank after the other (RDMC 4.3), or each its part. */

extern const struct schedule sequential_broadcast;
extern const struct schedule sequential_reduce;
extern const struct schedule sequential_scatter;
extern const struct schedule sequential_gather;

/* ---- bruck ----------------------------------------------------------------------------------------- */

/*
 * In step k partners are 2^k ranks apart, around the ring: ceil(log2 n) steps for any number of
 * ranks (Bruck et al., IEEE TPDS 1997). Run backwards, an all-gather is the reduce-scatter.
 */

extern const struct schedule bruck_allgather;
extern const struct schedule bruck_reduce_scatter;
extern const struct schedule bruck_allreduce;
extern const struct schedule bruck_alltoall;

/* ---- bcube ----------------------------------------------------------------------------------------- */

/*
 * Ranks are numbers whose digits have the prime factors of n as bases, in each step those that
 * differ in a digit exchange parts directly (Gloo's bcube, for any n).
 */

extern const struct schedule bcube_allgather;
extern const struct schedule bcube_reduce_scatter;
extern const struct schedule bcube_allreduce;

/* ---- tree schedules -------------------------------------------------------------------------------- */

/*
 * Blocks spread over a hypercube one after the other, each along its own binomial
 * tree: every rank sends and receives in nearly every step (RDMC 4.4; Ganesan and Seshadri 2005).
 */

extern const struct schedule pipeline_broadcast;
extern const struct schedule pipeline_reduce;

/* ---- binomial tree --------------------------------------------------------------------------------- */

/*
 * Each rank that has something passes half of the ranks that it serves to another one
 * (RDMC 4.3): broadcast and reduce of all blocks, scatter and gather of the parts of those ranks.
 */

extern const struct schedule binomial_broadcast;
extern const struct schedule binomial_reduce;
extern const struct schedule binomial_scatter;
extern const struct schedule binomial_gather;

/* ---- double tree ----------------------------------------------------------------------------------- */

/*
 * Two binary trees with half of the blocks each; a rank that passes blocks on in one of them
 * is a leaf of the other (Sanders, Speck and Traeff, Parallel Computing 2009).
 */

extern const struct schedule tree_broadcast;
extern const struct schedule tree_reduce;
extern const struct schedule tree_allreduce;

/* ---- halving doubling ------------------------------------------------------------------------------ */

/* All-reduce by exchanging halves, quarters, ..., and back (Rabenseifner 2004). */

extern const struct schedule halving_doubling;

/* ---- site schedules -------------------------------------------------------------------------------- */

/*
 * All-reduce over two levels: reduce-scatter in each site, all-reduce across sites of what
 * each rank has then, all-gather in each site. Sites may have any sizes.
 */

extern const struct schedule hierarchical_allreduce;

/* ---- hybrid ---------------------------------------------------------------------------------------- */

/*
 * Broadcast over two levels: a binomial pipeline of one rank of each site, the leaders, and
 * in each site another one that begins as soon as its leader has blocks (RDMC 4.3, hybrid algorithms).
 */

extern const struct schedule hybrid_broadcast;
extern const struct schedule hybrid_reduce;

/* ---- transpose ------------------------------------------------------------------------------------- */

/*
 * All-to-all over two levels: ranks of a site first collect what goes to the same ranks
 * elsewhere, so that a long link carries few large messages.
 */

extern const struct schedule transpose_alltoall;

/* ---- schedule table -------------------------------------------------------------------------------- */

/* The one list of schedules, and their names. */

/* All of them, ended by NULL. The first of a collective is its default. */
const struct schedule *const *schedule_table(void);
/* "allreduce" */
const char *collective_name(enum collective collective);
/* name NULL: the default. NULL: there is none of this name. */
const struct schedule *schedule_find(enum collective collective, const char *name);

#endif
