/*
 * placement.h - speculative placement: which packets a channel receives next, so that the kernel can copy
 * each payload to its place.
 *
 * Pure. The cursor stands behind the last packet seen. Places run from it in the order in which a sender
 * sends: on through the message, over the stripes of other channels and over what has arrived, then through
 * the bound slots that follow, round to where the cursor stood when the poll began (the floor). What was
 * seen in a poll lies between floor and cursor and is not offered again in that poll, since its bits are
 * not set yet.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_PLACEMENT_H
#define LH_FABRIC_UDP_PLACEMENT_H

#include "fabric/rx_check.h"

/* Packets examined in one call; bounds the walk over what has arrived already. */
#define PLACEMENT_STEPS_MAX 4096u

struct placement {
    uint32_t channel;
    uint32_t slot; /* cursor: the next packet is expected to be this one or one after it */
    uint32_t packet;
    uint32_t floor_slot;
    uint32_t floor_packet;
    uint32_t extent; /* one past the highest packet seen in the cursor's message */
    uint32_t usual;  /* extent of the message before it: messages tend to be of one length. 0: unknown */
};

void placement_init(struct placement *placement, uint32_t channel);
/* A slot was bound: what is remembered of its former message counts no more. */
void placement_on_bind(struct placement *placement, uint32_t slot);
/* The bits of everything seen are set by now: a poll begins. */
void placement_on_poll(struct placement *placement);
/* A packet passed every check. */
void placement_on_packet(struct placement *placement, const struct rx_table *table, uint32_t slot,
                         uint32_t packet);
/* Writes up to max places and returns their number: different, not received, each of one full packet in an
 * open slot. `open` has one bit a slot. */
uint32_t placement_list(const struct placement *placement, const struct rx_table *table,
                        const uint64_t *open, uint8_t **places, uint32_t max);

#endif
