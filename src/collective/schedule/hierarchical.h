/*
 * hierarchical.h - all-reduce over two levels: reduce-scatter in each site, all-reduce across sites of what
 * each rank has then, all-gather in each site. Sites may have any sizes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_HIERARCHICAL_H
#define LH_COLLECTIVE_SCHEDULE_HIERARCHICAL_H

#include "collective/schedule/schedule.h"

extern const struct schedule hierarchical_allreduce;

#endif
