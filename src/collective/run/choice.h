/*
 * choice.h - which schedule suits a collective: the fastest by a model of steps, bytes and sums.
 *
 * A step costs half a round trip and what a message costs the hosts; bytes cost their time on the slowest
 * path, and bytes that are added that of adding. All ranks put in the same numbers, and so choose the same.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_RUN_CHOICE_H
#define LH_COLLECTIVE_RUN_CHOICE_H

#include "collective/schedule/schedule.h"

struct choice_path {
    uint64_t rtt_ns;   /* the longest */
    uint64_t rate_bps; /* the lowest; 0: unknown */
    uint32_t sites;    /* 0: all ranks are in one */
    uint32_t largest;  /* ranks of one */
};

/* Expected duration in ns, of `bytes` in a row, in blocks of block_bytes. UINT64_MAX: no such schedule is
 * known here. */
uint64_t choice_expected_ns(const struct schedule *schedule, uint32_t ranks, uint64_t bytes,
                            uint64_t block_bytes, const struct choice_path *path);
/* The best, of those that there are; never NULL. */
const struct schedule *choice_make(enum collective collective, uint32_t ranks, uint64_t bytes,
                                   uint64_t block_bytes, const struct choice_path *path);

#endif
