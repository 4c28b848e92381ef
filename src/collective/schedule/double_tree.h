/*
 * double_tree.h - two binary trees with half of the blocks each; a rank that passes blocks on in one of them
 * is a leaf of the other (Sanders, Speck and Traeff, Parallel Computing 2009).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_DOUBLE_TREE_H
#define LH_COLLECTIVE_SCHEDULE_DOUBLE_TREE_H

#include "collective/schedule/schedule.h"

extern const struct schedule tree_broadcast;
extern const struct schedule tree_reduce;
extern const struct schedule tree_allreduce;

#endif
