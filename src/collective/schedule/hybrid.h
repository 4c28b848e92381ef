/*
 * hybrid.h - broadcast over two levels: a binomial pipeline of one rank of each site, the leaders, and
 * in each site another one that begins as soon as its leader has blocks (RDMC 4.3, hybrid algorithms).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_HYBRID_H
#define LH_COLLECTIVE_SCHEDULE_HYBRID_H

#include "collective/schedule/schedule.h"

extern const struct schedule hybrid_broadcast;
extern const struct schedule hybrid_reduce;

#endif
