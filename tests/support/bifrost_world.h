/*
 * bifrost_world.h - a long link under Bifrost, slot by slot, in exact bytes: the port under test
 * downstream, an upstream that honours each pause, and a drain that somebody else decides.
 *
 * A slot's grant lies at the end of the slot (the pause comes first) and arrives a round trip after it
 * was made. The world keeps its own books of what is on the wire; it never looks into the port.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SUPPORT_BIFROST_WORLD_H
#define SUPPORT_BIFROST_WORLD_H

#include <longhaul/flowcontrol.h>

#define BIFROST_WORLD_GRANTS 256u /* at most: slots of a round trip, and two */

struct bifrost_world {
    struct lh_bifrost port;
    uint32_t port_grants[BIFROST_WORLD_GRANTS];
    uint32_t sent[BIFROST_WORLD_GRANTS]; /* ring: bytes at the end of each slot of a round trip */
    uint32_t slots;                      /* of a round trip, and two */
    uint32_t oldest;
    uint64_t slot_bytes;
    uint64_t delta_bytes;
    uint64_t queue_bytes;
    uint32_t guard_slots; /* of the upstream; 0: none */
    uint32_t slack_bytes; /* what it still sends when its guard stops it */
    uint32_t lost;        /* frames in a row */
    /* what was seen */
    uint64_t most_bytes;  /* held, had nothing been given away before all of a slot had come */
    uint64_t given_bytes; /* by the drain */
    uint64_t dry_slots;   /* the drain wanted more than there was, at any moment of the slot */
    uint64_t over_slots;  /* L + F > H */
    uint64_t under_slots; /* L + F < delta + a slot */
    uint64_t slots_done;
};

/* by_grants: the second way of lh_bifrost_init(). The link is full at the beginning. */
void bifrost_world_init(struct bifrost_world *world, const struct lh_bifrost_config *config,
                        bool by_grants);
/* One slot. `drain_bytes`, at most a slot's: what the downstream would give away, at the full rate from
 * the slot's beginning on. `upstream_bytes`: what the upstream has for this slot; UINT64_MAX: always
 * more. `leak_bytes`: so much slips past the pause, where it is a part of the slot. Returns what the port
 * granted. */
uint64_t bifrost_world_slot(struct bifrost_world *world, uint64_t drain_bytes, uint64_t upstream_bytes,
                            uint64_t leak_bytes);
/* The same, of an upstream that always has more, and does not hear of this slot's pause: it sends the whole
 * slot, until its guard stops it. */
void bifrost_world_deaf_slot(struct bifrost_world *world, uint64_t drain_bytes);

#endif
