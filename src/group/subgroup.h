/*
 * subgroup.h - the two ends of lh_group_shrink(), between which the ranks agree: for tests that have all
 * ranks in one thread. Under the lock of the mesh.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_SUBGROUP_H
#define LH_GROUP_SUBGROUP_H

#include "group/group.h"

void subgroup_begin_shrink(struct lh_group *group);
/* When agreement_is_reached(). -LH_ENOMEM, -LH_ERANGE. */
int subgroup_finish_shrink(struct lh_group *group, struct lh_group **smaller);

#endif
