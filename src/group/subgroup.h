/*
 * subgroup.h - the two ends of lh_group_shrink() and of lh_group_split(), between which the ranks agree: for
 * tests that have all ranks in one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_SUBGROUP_H
#define LH_GROUP_SUBGROUP_H

#include "group/group.h"

/* Under the lock of the mesh. */
void subgroup_begin_shrink(struct lh_group *group);
/* When agreement_is_reached(). Likewise. -LH_ENOMEM, -LH_ERANGE. */
int subgroup_finish_shrink(struct lh_group *group, struct lh_group **smaller);

/* What each rank gathers of all. */
struct subgroup_choice {
    uint32_t color;
    uint32_t key;
    uint32_t next_group;
    uint32_t measured; /* of what it knows of paths */
};

struct subgroup_split {
    struct subgroup_choice mine;
    struct subgroup_choice *all; /* by rank */
    struct lh_collective *op;
};

/* What lh_allgather() returns. */
int subgroup_begin_split(struct lh_group *group, uint32_t color, uint32_t key,
                         struct subgroup_split *split);
/* When split->op is done, or lh_collective_wait() has come to `waited`, which then is returned. Ends the
 * split. The error of split->op; -LH_ENOMEM, -LH_ERANGE. */
int subgroup_finish_split(struct lh_group *group, struct subgroup_split *split, int waited,
                          struct lh_group **part);

#endif
