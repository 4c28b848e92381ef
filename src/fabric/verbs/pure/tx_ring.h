/*
 * tx_ring.h - writes that were given to a device and not released yet, in batches, in the order in which they
 * were taken. Pure.
 *
 * A batch goes to one queue pair and has one completion. Queue pairs of one channel complete out of each
 * other's order, but writes are released in order: a batch that completes early waits for those before it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_TX_RING_H
#define LH_FABRIC_VERBS_TX_RING_H

#include <stdbool.h>
#include <stdint.h>

#define TX_RING_NONE UINT64_MAX /* the number of no batch */

struct tx_batch {
    uint32_t writes;
    bool done;
};

struct tx_ring {
    struct tx_batch *batches; /* writes_max of them, owned by the caller */
    uint32_t writes_max;      /* in flight; a power of two */
    uint64_t next;            /* number of the next batch */
    uint64_t oldest;          /* of the oldest that is not released */
    uint64_t taken;           /* writes, ever */
    uint64_t released;
};

/* Writes that may be added now. */
uint32_t tx_ring_room(const struct tx_ring *ring);
/* Adds a batch of 1 … room writes; its number is what ring->next was. */
void tx_ring_push(struct tx_ring *ring, uint32_t writes);
/* The batch of that number is done. False, and nothing changes, when it is not in flight. */
bool tx_ring_complete(struct tx_ring *ring, uint64_t number);

#endif
