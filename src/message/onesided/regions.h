/*
 * regions.h - the memory of one connection that its peer may write to or read from, by key. Pure.
 *
 * A key has the place of its region in its lowest bits, and the caller's random number in the others. It is
 * never used again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_ONESIDED_REGIONS_H
#define LH_MESSAGE_ONESIDED_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

#define REGIONS_MAX 1024u /* a power of two: LH_REGIONS_MAX */

struct region {
    uint64_t key;
    uint64_t bytes;
    uint32_t access; /* bits of enum lh_access */
};

/* All zero: none. */
struct regions {
    struct region *places[REGIONS_MAX];
    uint32_t count;
};

/* Gives the region a key. False: REGIONS_MAX are there. */
bool regions_add(struct regions *regions, struct region *region, uint64_t random);
void regions_remove(struct regions *regions, const struct region *region);
/* The region of a key that the peer names; else NULL. */
struct region *regions_find(const struct regions *regions, uint64_t key);
/* Whether the peer may do this: 0, or a positive lh_error: LH_EKEY (no such region; not this access) or
 * LH_ERANGE. region: may be NULL. */
int region_check(const struct region *region, uint32_t access, uint64_t offset, uint64_t bytes);

#endif
