/*
 * binomial_pipeline.h - blocks spread over a hypercube one after the other, each along its own binomial
 * tree: every rank sends and receives in nearly every step (RDMC 4.4; Ganesan and Seshadri 2005).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_BINOMIAL_PIPELINE_H
#define LH_COLLECTIVE_SCHEDULE_BINOMIAL_PIPELINE_H

#include "collective/schedule/schedule.h"

extern const struct schedule pipeline_broadcast;
extern const struct schedule pipeline_reduce;

#endif
