/*
 * sequential.h - the root sends everything to one rank after the other (RDMC 4.3), or each its part.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_SEQUENTIAL_H
#define LH_COLLECTIVE_SCHEDULE_SEQUENTIAL_H

#include "collective/schedule/schedule.h"

extern const struct schedule sequential_broadcast;
extern const struct schedule sequential_reduce;
extern const struct schedule sequential_scatter;
extern const struct schedule sequential_gather;

#endif
