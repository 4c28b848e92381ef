/*
 * prng.h - a small, fast, seeded random generator (xoshiro256**, Blackman and Vigna 2018).
 *
 * One generator a component: drawing from one never shifts the stream of another.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BASE_PRNG_H
#define LH_BASE_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct lh_prng {
    uint64_t state[4];
};

/* Any seed is good, 0 too (the state is spread by splitmix64). */
void lh_prng_seed(struct lh_prng *prng, uint64_t seed);
/* An independent generator for a component, named by a number. The parent does not move: until it draws,
 * the same number gives the same generator, whatever else was forked. */
struct lh_prng lh_prng_fork(const struct lh_prng *prng, uint64_t component);
uint64_t lh_prng_next(struct lh_prng *prng);
/* Uniform in 0 … bound - 1, without bias; bound > 0. */
uint64_t lh_prng_below(struct lh_prng *prng, uint64_t bound);
/* Uniform in [0, 1). */
double lh_prng_double(struct lh_prng *prng);
/* True with this probability; draws nothing when it is 0 or 1. */
bool lh_prng_chance(struct lh_prng *prng, double probability);

#endif
