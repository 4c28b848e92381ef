/*
 * dissemination.h - barrier: in each step everybody reports all that it has learned of, at twice the
 * distance of the step before (Hensgen, Finkel and Manber 1988).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_DISSEMINATION_H
#define LH_COLLECTIVE_SCHEDULE_DISSEMINATION_H

#include "collective/schedule/schedule.h"

extern const struct schedule dissemination_barrier;

#endif
