/*
 * shrink.h - leaves out of a failing plan whatever it fails without.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_SHRINK_H
#define LH_TESTS_WORLD_SHRINK_H

#include "world/world.h"

/* Makes the plan smaller as long as the same checker objects. Each try runs in a process of its own;
 * bounded by `tries`. Returns how many were used; *report is that of the last plan that failed. */
uint32_t shrink_plan(struct plan *plan, enum world_canary canary, uint32_t tries,
                     struct world_report *report);

#endif
