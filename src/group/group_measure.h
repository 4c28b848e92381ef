/*
 * group_measure.h - lh_group_measure(), as steps: all ranks do the same operations in the same order,
 * whatever a pair of them finds, so that each has its number everywhere.
 *
 * In each round (collective/choose/schedule_choice.h) two ranks exchange bursts of blocks, each four
 * times the one before, as long as a burst is short beside their round trip. Ahead of each they exchange
 * what they know of the one before, so that both begin it, and both decide the same.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_GROUP_MEASURE_H
#define LH_GROUP_GROUP_MEASURE_H

#include "group/group.h"

#define MEASURE_BURSTS 3u

/* What a rank knows of a burst that came to it. */
struct measure_record {
    uint64_t rtt_ns;
    uint64_t span_ns; /* from its first block to its last; 0: unknown */
};

struct group_measure {
    struct lh_group *group;
    struct lh_collective *op; /* pending; NULL: it is over */
    size_t burst_bytes;       /* of the first */
    uint32_t round;
    uint32_t step;    /* of the round */
    uint32_t partner; /* LH_NO_RANK: none */
    bool enough;      /* nothing more to exchange with it */
    bool known;       /* its rate is that of a burst that lasted for a while */
    struct measure_record own, other;
    size_t *counts;      /* by rank */
    uint64_t *rates_bps; /* by rank */
    uint8_t *out, *in;   /* of a burst */
    uint8_t *rows;
};

/* Begins. first_bytes: of the first burst. -LH_ENOMEM, and what lh_allgather() returns. */
int measure_begin(struct lh_group *group, size_t first_bytes, struct group_measure *measure);
/* measure->op is done, or lh_collective_wait() has come to `waited`: goes on. The error of the operation;
 * -LH_ENOMEM. */
int measure_go_on(struct group_measure *measure, int waited);
/* Frees all; a pending operation is canceled at all ranks. */
void measure_end(struct group_measure *measure);

#endif
