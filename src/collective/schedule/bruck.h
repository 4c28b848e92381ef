/*
 * bruck.h - in step k partners are 2^k ranks apart, around the ring: ceil(log2 n) steps for any number of
 * ranks (Bruck et al., IEEE TPDS 1997). Run backwards, an all-gather is the reduce-scatter.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_BRUCK_H
#define LH_COLLECTIVE_SCHEDULE_BRUCK_H

#include "collective/schedule/schedule.h"

extern const struct schedule bruck_allgather;
extern const struct schedule bruck_reduce_scatter;
extern const struct schedule bruck_allreduce;
extern const struct schedule bruck_alltoall;

#endif
