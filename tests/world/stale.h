/*
 * stale.h - a fabric that reports packets of slots that are over, as a NIC may whose completions come late,
 * or packets behind the end of a buffer, as a NIC does when a peer asks for it.
 *
 * The fabrics in software refuse such packets themselves, so that nothing would show whether the SDR layer
 * does so, too. Here it is given them behind the fabric's back, by the linker, and must count each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_STALE_H
#define LH_TESTS_WORLD_STALE_H

#include "world/world.h"

/* From now on in this world; NULL: no more. The reports follow from the plan's seed. */
void stale_begin(struct world *world);
/* The end was opened: what an earlier incarnation of it received is not its own. */
void stale_forget(const struct end *end);

#endif
