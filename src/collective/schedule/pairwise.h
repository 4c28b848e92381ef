/*
 * pairwise.h - all-to-all in which each step pairs each rank with one to send to and one to receive from.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_PAIRWISE_H
#define LH_COLLECTIVE_SCHEDULE_PAIRWISE_H

#include "collective/schedule/schedule.h"

extern const struct schedule pairwise_alltoall;

#endif
