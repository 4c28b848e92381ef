/*
 * schedule_table.h - the one list of schedules, and their names.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_SCHEDULE_TABLE_H
#define LH_COLLECTIVE_SCHEDULE_SCHEDULE_TABLE_H

#include "collective/schedule/schedule.h"

/* All of them, ended by NULL. The first of a collective is its default. */
const struct schedule *const *schedule_table(void);
/* "allreduce" */
const char *collective_name(enum collective collective);
/* name NULL: the default. NULL: there is none of this name. */
const struct schedule *schedule_find(enum collective collective, const char *name);

#endif
