/*
 * faults.h - the events of a plan that are not users': when they begin, what they do to packets, when they
 * end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_FAULTS_H
#define LH_TESTS_WORLD_FAULTS_H

#include "world/world.h"

/* Puts links, clocks and taps in place, and the events in the order of their times. */
void faults_prepare(struct world *world);
/* Begins and ends what is due. Returns when to call again. */
lh_time faults_act(struct world *world);
/* Ends every fault, for good. */
void faults_heal(struct world *world);

#endif
