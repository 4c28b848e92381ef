/*
 * ring.h - each rank sends to the next one only, and receives from the one before (SDR-RDMA, appendix C).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_RING_H
#define LH_COLLECTIVE_SCHEDULE_RING_H

#include "collective/schedule/schedule.h"

extern const struct schedule ring_allreduce;
extern const struct schedule ring_reduce_scatter;
extern const struct schedule ring_allgather;

#endif
