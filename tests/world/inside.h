/*
 * inside.h - the few things that checkers read inside the product: how full its queues are, which ports it
 * has.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_INSIDE_H
#define LH_TESTS_WORLD_INSIDE_H

#include "world/world.h"

/* What a connection is made of. */
void inside_connection(struct lh_connection *connection, struct sdr_context **context, struct sdr_qp **qp);
/* Its first port, of so many in a row. */
uint16_t inside_qp_ports(struct sdr_qp *qp, uint16_t *count);

/* One bound: what it is called, how much there is, how much there may be. */
struct inside_bound {
    const char *name;
    uint64_t used;
    uint64_t most;
};
#define INSIDE_BOUNDS_MAX 48u
uint32_t inside_qp_bounds(struct sdr_qp *qp, struct inside_bound bounds[INSIDE_BOUNDS_MAX]);
uint32_t inside_connection_bounds(const struct lh_connection *connection,
                                  struct inside_bound bounds[INSIDE_BOUNDS_MAX]);
/* How often the slot was used that was used most. */
uint32_t inside_qp_slot_uses(struct sdr_qp *qp);

#endif
