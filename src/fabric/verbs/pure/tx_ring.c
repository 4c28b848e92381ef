/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/pure/tx_ring.h"

#include <assert.h>

static struct tx_batch *batch_of(const struct tx_ring *ring, uint64_t number)
{
    return &ring->batches[number & (ring->writes_max - 1)];
}

uint32_t tx_ring_room(const struct tx_ring *ring)
{
    assert(ring->taken - ring->released <= ring->writes_max);
    return ring->writes_max - (uint32_t)(ring->taken - ring->released);
}

void tx_ring_push(struct tx_ring *ring, uint32_t writes)
{
    assert(writes > 0 && writes <= tx_ring_room(ring));
    *batch_of(ring, ring->next++) = (struct tx_batch){.writes = writes};
    ring->taken += writes;
}

bool tx_ring_complete(struct tx_ring *ring, uint64_t number)
{
    if (number < ring->oldest || number >= ring->next || batch_of(ring, number)->done)
        return false;
    batch_of(ring, number)->done = true;
    while (ring->oldest < ring->next && batch_of(ring, ring->oldest)->done) /* bounded by the ring */
        ring->released += batch_of(ring, ring->oldest++)->writes;
    return true;
}
