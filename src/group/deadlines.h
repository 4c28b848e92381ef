/*
 * deadlines.h - deadlines of operations that nobody has given (`bounded`, or `bounded:deadline=auto`): a
 * group's timeout (longhaul/timeout.h) for each collective. The first operation has none, and is the
 * warm-up; after each of the others a rank proposes to all what its bytes took, over the reliable path,
 * and waits for nobody.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_DEADLINES_H
#define LH_GROUP_DEADLINES_H

#include "group/bounded.h"

/* The deadline of an operation that begins, if one is learned. -LH_ENOMEM. */
int deadlines_begin(struct lh_collective *op);
/* An operation has ended well: proposes. */
int deadlines_end(struct lh_collective *op);
/* A proposal. -LH_EPROTOCOL: it is none; -LH_ENOMEM. */
int deadlines_on_proposal(struct lh_group *group, uint32_t rank, uint32_t collective, const uint8_t *data,
                          size_t bytes);

#endif
