/*
 * schedule_check.h - runs a schedule step by step on bookkeeping alone, and checks what every schedule
 * promises: partners agree in each step, nobody sends what it does not hold, nothing arrives twice, no rank
 * sends and receives a block in one step, and at the end all have what the collective promises, sums with
 * each contribution exactly once.
 *
 * Up to 64 ranks a sum is the set of its contributions; beyond, the sum of a random number per rank.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SUPPORT_SCHEDULE_CHECK_H
#define SUPPORT_SCHEDULE_CHECK_H

#include "collective/schedule.h"

/* What was counted. Most: of any rank, link or site. */
struct schedule_counts {
    uint32_t steps;
    uint32_t last_receipts[2]; /* first and last of the steps in which ranks got their last block */
    uint64_t moved;            /* blocks of all transfers */
    uint64_t sent_max;         /* by a rank */
    uint64_t received_max;
    uint64_t link_max;   /* from a rank to another */
    uint64_t site_max;   /* into a site */
    uint64_t site_moved; /* into all sites */
    uint32_t peers_max;  /* that a rank sends to, or receives from, in a step */
};

/* NULL, or the first breach; *counts is set in either case. Extents must be below blocks, those of an
 * all-to-all below ranks * blocks. */
const char *schedule_check(const struct schedule *schedule, const struct schedule_shape *shape,
                           struct schedule_counts *counts);

#endif
