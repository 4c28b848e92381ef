/*
 * prng.c - xoshiro256** with its state spread by splitmix64 (prng.di.unimi.it, both public domain).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/prng.h"

#include <assert.h>

static uint64_t rotate_left(uint64_t value, unsigned bits)
{
    return (value << bits) | (value >> (64 - bits));
}

/* One output of splitmix64; the state moves on. */
static uint64_t splitmix_next(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15u;
    uint64_t value = *state;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
}

void lh_prng_seed(struct lh_prng *prng, uint64_t seed)
{
    for (unsigned i = 0; i < 4; i++)
        prng->state[i] = splitmix_next(&seed);
    /* xoshiro would stay at zero for ever; four consecutive outputs of splitmix64 are never all zero. */
    assert((prng->state[0] | prng->state[1] | prng->state[2] | prng->state[3]) != 0);
}

struct lh_prng lh_prng_fork(const struct lh_prng *prng, uint64_t component)
{
    uint64_t seed = component;
    for (unsigned i = 0; i < 4; i++) {
        seed ^= prng->state[i];
        seed = splitmix_next(&seed);
    }
    struct lh_prng child;
    lh_prng_seed(&child, seed);
    return child;
}

uint64_t lh_prng_next(struct lh_prng *prng)
{
    uint64_t *state = prng->state;
    uint64_t result = rotate_left(state[1] * 5, 7) * 9;
    uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate_left(state[3], 45);
    return result;
}

uint64_t lh_prng_below(struct lh_prng *prng, uint64_t bound)
{
    assert(bound > 0);
    /* The draws below 2^64 mod bound would make some results likelier: draw again. Fewer than half of all
     * draws are refused, so the loop ends after two rounds in the mean at worst. */
    uint64_t refused = (0u - bound) % bound;
    uint64_t draw = lh_prng_next(prng);
    while (draw < refused)
        draw = lh_prng_next(prng);
    return draw % bound;
}

double lh_prng_double(struct lh_prng *prng)
{
    return (double)(lh_prng_next(prng) >> 11) * 0x1p-53;
}

bool lh_prng_chance(struct lh_prng *prng, double probability)
{
    if (!(probability > 0))
        return false;
    return probability >= 1 || lh_prng_double(prng) < probability;
}
