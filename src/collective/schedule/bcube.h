/*
 * bcube.h - ranks are numbers whose digits have the prime factors of n as bases, in each step those that
 * differ in a digit exchange parts directly (Gloo's bcube, for any n).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_BCUBE_H
#define LH_COLLECTIVE_SCHEDULE_BCUBE_H

#include "collective/schedule/schedule.h"

extern const struct schedule bcube_allgather;
extern const struct schedule bcube_reduce_scatter;
extern const struct schedule bcube_allreduce;

#endif
