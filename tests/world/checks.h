/*
 * checks.h - what must hold of an end at any moment, and of every packet.
 *
 * Users check what they see themselves (talk.c, exchange.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_CHECKS_H
#define LH_TESTS_WORLD_CHECKS_H

#include "world/world.h"

/* A user asks again so long after a refusal. */
#define RETRY_NS (50 * LH_NS_PER_US)

/* Fills what is known of each pair before it begins: how fast and slow its path can be, what may end it. */
void check_prepare(struct world *world);
/* Round trips, queues. After each round of the end, and before it goes. */
void check_end(struct world *world, struct end *end);
/* Counters, before the end goes. */
void check_counters(struct world *world, struct end *end);
/* A packet as an honest host sends it. */
void check_sent(struct world *world, const struct sim_datagram *datagram);

/* A round trip of a pair whose network is well. */
lh_time check_rtt_well(const struct world *world, const struct pair *pair);

/* Index of the first byte that differs, or `bytes`. */
size_t check_first_difference(const uint8_t *a, const uint8_t *b, size_t bytes);
bool check_filled(const uint8_t *data, size_t bytes, uint8_t with);

#endif
