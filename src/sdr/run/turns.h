/*
 * turns.h - in which order a worker serves what is ready: start-time fair queueing (Goyal, Vin and Cheng,
 * SIGCOMM 1996) by what turns cost, in bytes. Pure.
 *
 * A turn starts, in virtual time, where the entry's last one ended; the earliest start is served first,
 * and is the virtual time from then on. So entries that are always ready get equal shares, whatever a turn
 * of each takes. An entry that was idle may start up to TURNS_CREDIT before the virtual time, and so
 * before all that used up their share: a few small messages do not wait for bulk, and a flood of them
 * does, once it had that much.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_TURNS_H
#define LH_SDR_TURNS_H

#include <stdbool.h>

#include "base/due_heap.h"

/* What a turn costs: its bytes, and so much for each packet, each control message, and for itself. Not its
 * time: who reads a socket that others share would pay for all. */
#define TURNS_PACKET  1024u
#define TURNS_CONTROL 512u
#define TURNS_SELF    512u
#define TURNS_CREDIT  ((uint64_t)256 * 1024) /* about one full turn */

/* Part of what has turns. Zeroed: it has had none. */
struct turn {
    struct due start; /* virtual */
    uint64_t ended;   /* the last one, likewise */
};

struct turn_order {
    struct due_heap waiting;
    uint64_t now; /* virtual: the latest start */
};

/* For at most `room` entries; the caller owns their places. */
void turns_init(struct turn_order *turns, struct due **places, uint32_t room);
/* It waits for its turn from now on; one that does already keeps its place. */
void turns_enter(struct turn_order *turns, struct turn *turn);
/* It does not wait any more. */
void turns_leave(struct turn_order *turns, struct turn *turn);
/* Whose turn it is, which does not wait any more; NULL: nobody's. */
struct turn *turns_next(struct turn_order *turns);
/* What its turn cost. */
void turns_charge(struct turn *turn, uint64_t cost);

static inline bool turns_waiting(const struct turn_order *turns)
{
    return turns->waiting.count > 0;
}

#endif
