/*
 * hostile.h - packets that nobody of the plan sent: made up, overheard and sent again, or changed.
 *
 * A hostile host can send from any address. With `forge` it knows keys and tokens and makes checksums
 * right, so all that can be asked of the product is that it stays within its memory and its bounds. With
 * `lie` it writes reports of arrivals: they may slow a sender down, no more. Whatever else is hostile must do
 * no harm at all.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_HOSTILE_H
#define LH_TESTS_WORLD_HOSTILE_H

#include "world/world.h"

/* Remembers a packet that an honest host sent. */
void hostile_overhear(struct world *world, const struct sim_datagram *datagram);
/* An invented packet from one host of the event to the other, now. */
void hostile_invent(struct world *world, const struct plan_event *event, struct lh_prng *prng);
/* One that was captured, of this incarnation or an earlier one, now. */
void hostile_replay(struct world *world, struct lh_prng *prng);
/* A changed copy of a packet, soon. */
void hostile_mutate(struct world *world, const struct plan_event *event, struct lh_prng *prng,
                    const struct sim_datagram *datagram);
/* After a control message, or instead of it: a report that is well formed, with its token and times, and that
 * the host did not write. Whether the message passes. */
bool hostile_lie(struct world *world, const struct plan_event *event, struct running *running,
                 const struct sim_datagram *datagram);

/* The packet arrives many times. */
void hostile_flood(struct world *world, struct lh_prng *prng, const struct sim_datagram *datagram);

#endif
