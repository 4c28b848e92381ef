/*
 * predict.h - guesses which packets a channel receives next, so that the kernel can copy each payload to
 * its place.
 *
 * Pure. The cursor stands behind the last packet seen. Guesses run from it in the order in which a sender
 * sends: on through the message, over the stripes of other channels and over what has arrived, then through
 * the bound slots that follow, round to where the cursor stood when the poll began (the floor). What was
 * seen in a poll lies between floor and cursor and is never guessed again in that poll, since its bits are
 * not set yet.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_PREDICT_H
#define LH_FABRIC_UDP_PREDICT_H

#include "fabric/rx_check.h"

/* Packets looked at in one call; bounds the walk over what has arrived already. */
#define PREDICT_STEPS_MAX 4096u

struct predict {
    uint32_t channel;
    uint32_t slot; /* cursor: the next packet is expected to be this one or one after it */
    uint32_t packet;
    uint32_t floor_slot;
    uint32_t floor_packet;
    uint32_t extent; /* one past the highest packet seen in the cursor's message */
    uint32_t usual;  /* extent of the message before it: messages tend to be of one length. 0: unknown */
};

void predict_init(struct predict *predict, uint32_t channel);
/* A slot was bound: what is remembered of its former message counts no more. */
void predict_on_bind(struct predict *predict, uint32_t slot);
/* The bits of everything seen are set by now: a poll begins. */
void predict_poll_begins(struct predict *predict);
/* A packet passed every check. */
void predict_saw(struct predict *predict, const struct rx_table *table, uint32_t slot, uint32_t packet);
/* Writes up to max places into places and returns how many: different, not received, each the room of one
 * full packet in an open slot. `open` has one bit a slot. */
uint32_t predict_places(const struct predict *predict, const struct rx_table *table, const uint64_t *open,
                        uint8_t **places, uint32_t max);

#endif
