/*
 * group_world.h - a group over a simulated network, all its ranks in one thread, for tests.
 *
 * Any failure to set up ends the test. Everything follows from the seed and the order of calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_GROUP_WORLD_H
#define LH_TESTS_SUPPORT_GROUP_WORLD_H

#include <longhaul/collective.h>
#include <longhaul/group.h>

#include "support/sim_engines.h"

struct group_world {
    struct sim_engines net;
    uint32_t size;
    struct lh_group *groups[SIM_ENGINES_MAX];
    bool dead[SIM_ENGINES_MAX]; /* makes no progress any more */
};

/* link: text, each way between two ranks. attr: of all ranks; rank, size, engine and exchange are set here;
 * NULL: the defaults. sites: by rank; NULL: none. */
void group_world_open(struct group_world *world, const char *name, uint64_t seed, const char *link,
                      uint32_t size, const struct lh_group_attr *attr, const char *const *sites);
void group_world_close(struct group_world *world);
/* A rank makes no progress any more, nor does its engine. */
void group_world_kill(struct group_world *world, uint32_t rank);
/* A rank closes its connections; its engine goes on. */
void group_world_leave(struct group_world *world, uint32_t rank);
lh_time group_world_now(const struct group_world *world);
/* All that is due now, then on to the next event, at most to `limit`. */
void group_world_turn(struct group_world *world, lh_time limit);
/* Runs until all operations (NULL: none) are done, at most for `limit_ns`; whether they are. */
bool group_world_run(struct group_world *world, struct lh_collective *const *ops, uint32_t count,
                     lh_time limit_ns);

#endif
