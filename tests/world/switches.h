/*
 * switches.h - a switched network between the hosts of a run, in some of the seeds: queues that drop or
 * pause, several ways, faults inside, traffic of others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_SWITCHES_H
#define LH_TESTS_WORLD_SWITCHES_H

#include "world/world.h"

/* Draws the network of a plan; used when the feature `switches` is on. */
void switches_draw(struct plan *plan, struct lh_prng *prng);
/* Builds it and puts it under the world. */
void switches_open(struct world *world);
/* Its cables lose nothing any more; the traffic of others ends by itself. */
void switches_heal(struct world *world);

/* How long a packet needs for its way through it, at least. 0 without a network. */
lh_time switches_min_ns(const struct plan *plan);
/* The same at most, when it carries that number of bytes of the run's users. */
lh_time switches_max_ns(const struct plan *plan, uint64_t bytes);
/* Whether it changes packets on their way. */
bool switches_corrupt(const struct plan *plan);
void switches_describe(FILE *out, const struct plan *plan);

#endif
