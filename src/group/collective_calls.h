/*
 * collective_calls.h - starts what the calls of longhaul/collective.h describe.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_COLLECTIVE_CALLS_H
#define LH_GROUP_COLLECTIVE_CALLS_H

#include "group/group.h"

/* ---- gather ---------------------------------------------------------------------------------------- */

/* An all-gather among the ranks of a group, for what the group itself needs. */

/* Copies the `bytes` of each rank's `mine` to all[rank * bytes]. Waits, so the engine has workers. What
 * lh_allgather() and its operation return. */
int group_gather(struct lh_group *group, const void *mine, size_t bytes, void *all);
/* Begins one: every byte arrives, whatever the hops. */
int gather_begin(struct lh_group *group, const void *mine, size_t bytes, void *all,
                 struct lh_collective **op);
/* Its end: lh_collective_wait() has come to `waited`. Frees the operation. That error, or the operation's. */
int gather_end(struct lh_collective *op, int waited);

#endif
