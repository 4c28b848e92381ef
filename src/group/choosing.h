/*
 * choosing.h - which schedule an operation takes: the fastest over the paths that all members have agreed on,
 * by collective/choose/choose.h, as `longhaul plan --collective` does. Its blocks are the group's: on a
 * machine smaller ones take longer than the model says.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_CHOOSING_H
#define LH_GROUP_CHOOSING_H

#include "collective/schedule/schedule.h"

struct lh_group;

/* The same at all members. */
struct choosing {
    const struct schedule **chosen; /* by collective and size; NULL: none was asked for */
};

void choosing_free(struct choosing *choosing);
/* Whether a collective follows the order of the group's map: unless that is by rank, in one site. */
bool choosing_uses_map(const struct lh_group *group, enum collective collective);
/* For an operation whose row has that many bytes. Under the lock of the mesh. -LH_ENOMEM. */
int choosing_find(struct lh_group *group, enum collective collective, uint64_t bytes,
                  const struct schedule **schedule);

#endif
