/*
 * ranks.h - the ranks of a group while a life runs: each calls what the plan says, in epochs; a new group is
 * made between two of them, and when a rank has died.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_GROUP_RANKS_H
#define LH_TESTS_WORLD_GROUP_RANKS_H

#include "world/world.h"

/* Creates all, and attaches who is not late. */
void ranks_make(struct world *world);
/* Everything that is due; when something is next. */
lh_time ranks_act(struct world *world);
/* Whether all that live have done all. */
bool ranks_over(const struct world *world);
/* How long that may take, from the moment at which the network is well. */
lh_time ranks_bound(const struct world *world);
void ranks_on_arrival(struct world *world, uint32_t host);
void ranks_die(struct world *world, uint32_t host);
/* A host dies when it next agrees on who is left, and its last messages do not reach the event's peer; or
 * when it next has measured the paths. */
void ranks_die_later(struct world *world, const struct plan_event *event);
/* Whether they do not. */
bool ranks_are_cut(const struct world *world, uint32_t from, uint32_t to);
void ranks_give_up(struct world *world, const struct plan_event *event);
/* They go on: the network is well. */
void ranks_on_healed(struct world *world);
/* Checks what is left, and destroys all. */
void ranks_end(struct world *world);

/* Whether a rank of a host may fail without its death. */
bool ranks_may_fail(const struct world *world);

#endif
