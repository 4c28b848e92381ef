/*
 * large.h - runs with sizes as users have them: several words of each bitmap, more chunks than one
 * acknowledgement names, several submessages, several segments, or more of them than a DONE names.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_LARGE_H
#define LH_TESTS_WORLD_LARGE_H

#include "world/plan.h"

/* The plan as its features have it: with `large`, other sizes, longer messages, and time for them; else
 * nothing changes. Once only. What it draws follows from the seed, and from no other draw. */
void plan_enlarge(struct plan *plan);

#endif
