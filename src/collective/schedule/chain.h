/*
 * chain.h - each rank passes each block to the next one as soon as it has it (RDMC 4.3, chain send).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_SCHEDULE_CHAIN_H
#define LH_COLLECTIVE_SCHEDULE_CHAIN_H

#include "collective/schedule/schedule.h"

extern const struct schedule chain_broadcast;
extern const struct schedule chain_reduce;

#endif
