/*
 * halving_doubling.h - all-reduce by exchanging halves, quarters, ..., and back (Rabenseifner 2004).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_HALVING_DOUBLING_H
#define LH_COLLECTIVE_SCHEDULE_HALVING_DOUBLING_H

#include "collective/schedule/schedule.h"

extern const struct schedule halving_doubling;

#endif
