/*
 * workload_pairs.h - sources and destinations of a workload: host groups, and transfers of sites, "a>c,
 * b>c=2".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_WORKLOAD_PAIRS_H
#define LH_NETSIM_WORKLOAD_WORKLOAD_PAIRS_H

#include "base/prng.h"
#include "collective/schedule.h"
#include "netsim/base/flow_list.h"
#include "netsim/base/netsim_config.h"
#include "netsim/engine/network.h"

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

#endif
