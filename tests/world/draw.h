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

static inline bool draw_chance(struct lh_prng *prng, double chance)
{
    return lh_prng_chance(prng, chance);
}

/* Small values as likely as large ones: a random number of bits, then the bits. */
uint64_t draw_spread(struct lh_prng *prng, uint64_t low, uint64_t high);
/* Adds an event, at any time before the network heals. */
struct plan_event *draw_event(struct plan *plan, enum plan_event_kind kind, struct lh_prng *prng);
/* How long a fault lasts: mostly some round trips, sometimes seconds. */
lh_time sample_span(const struct plan *plan, struct lh_prng *prng);
/* A code whose parity fits the slots, which are drawn already; "" when none does. */
void draw_code(const struct lh_attr *attr, struct lh_prng *prng, char *text, size_t size);

/* A scheme of the frozen newcomers, with parameters, if its parity fits the slots; "" when there is none.
 * Of a seed with plan_draws_added(): one that is in no frozen list, where the table has any. */
void draw_newcomer(uint64_t seed, const struct lh_attr *attr, struct lh_prng *prng, char *text,
                   size_t size);
/* The name of a controller; the same. */
const char *draw_controller(uint64_t seed, struct lh_prng *prng);
/* Whether a scheme with these parameters fits the slots. */
bool draw_fits(const struct lh_attr *attr, const struct lh_scheme *scheme, const char *parameters);

#endif
