/*
 * draw.h - what the files that draw a plan share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_DRAW_H
#define LH_TESTS_WORLD_DRAW_H

#include "base/prng.h"
#include "world/plan.h"

static inline uint64_t draw_between(struct lh_prng *prng, uint64_t low, uint64_t high)
{
    return low + lh_prng_below(prng, high - low + 1);
}

/* Small values as likely as large ones: a random number of bits, then the bits. */
uint64_t draw_spread(struct lh_prng *prng, uint64_t low, uint64_t high);
/* A code whose parity fits the slots, which are drawn already; "" when none does. */
void draw_code(const struct lh_attr *attr, struct lh_prng *prng, char *text, size_t size);

#endif
