/*
 * mtu_search.h - which sizes to try next, to find the largest packet that passes.
 *
 * Several sizes are tried at once, so that a long path costs few round trips: first the MTUs that links
 * have, then sizes spread evenly over what is left. What passed, passed: the answer is always a size that
 * was seen to pass. What did not may have been lost; so when nothing is left between the two, the next size
 * up is tried again, many times, and if it passes the search goes on above it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_MTU_SEARCH_H
#define LH_PROBE_MTU_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#define MTU_SEARCH_SIZES_MAX 12u
/* Tries of each size in a round: with 1 packet in 10 lost, 1 size in 1000 is misjudged, and found out in
 * the end. */
#define MTU_SEARCH_TRIES         3u
#define MTU_SEARCH_TRIES_CONFIRM 12u
/* Rounds that a search may take: each leaves a thirteenth of a range of 65536, or ends it, so six are
 * enough; the rest is for sizes that were misjudged. */
#define MTU_SEARCH_ROUNDS_MAX 24u

struct mtu_search {
    uint32_t passed_bytes;  /* the largest that passed; 0: none */
    uint32_t failed_bytes;  /* the smallest above it that seems not to */
    uint32_t ceiling_bytes; /* nothing is larger */
    uint32_t rounds;
    bool confirming;
    bool done;
};

struct mtu_search_round {
    uint32_t count; /* sizes, ascending; 0: done */
    uint32_t sizes[MTU_SEARCH_SIZES_MAX];
    uint32_t tries; /* of each */
};

/* Of IP packets of floor to ceiling bytes. */
void mtu_search_init(struct mtu_search *search, uint32_t floor_bytes, uint32_t ceiling_bytes);
struct mtu_search_round mtu_search_next(const struct mtu_search *search);
/* The outcome of that round: passed[i] belongs to sizes[i]. */
void mtu_search_on_round(struct mtu_search *search, const struct mtu_search_round *round,
                         const bool *passed);

#endif
