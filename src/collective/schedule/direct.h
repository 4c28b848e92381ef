/*
 * direct.h - all-reduce of few ranks in one step: each sends all that it has to each other one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_DIRECT_H
#define LH_COLLECTIVE_SCHEDULE_DIRECT_H

#include "collective/schedule/schedule.h"

extern const struct schedule direct_allreduce;

#endif
