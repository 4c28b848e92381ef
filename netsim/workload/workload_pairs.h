/*
 * transfers.h - the flows of a collective: the transfers of its schedule, step by step, cut between blocks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_TRANSFERS_H
#define LH_NETSIM_WORKLOAD_TRANSFERS_H

#include "collective/schedule/schedule.h"

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
uint32_t transfers_count(const struct transfers *transfers, uint32_t most, uint64_t *blocks);
/* Of a whole tensor of at most 2^44 bytes, which is shared out evenly among the blocks. */
uint64_t transfer_bytes(const struct transfers *transfers, const struct transfer *transfer, uint64_t bytes);

#endif
