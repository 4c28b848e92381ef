/*
 * names.h - types, reductions and schedules by name: the calls of longhaul/collective.h, and this one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_RUN_NAMES_H
#define LH_COLLECTIVE_RUN_NAMES_H

#include <stddef.h>

#include "collective/schedule/schedule.h"

/* "gather"; uneven: of its v-variant, "gatherv". */
const char *call_name(enum collective collective, bool uneven);
/* The schedule of a collective by its name. NULL: there is none, and names[size] has those that there are. */
const struct schedule *named_schedule(enum collective collective, const char *name, char *names,
                                      size_t size);

#endif
