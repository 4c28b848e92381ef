/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/fabric/packet_pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BITS_PER_BYTE 8u

static bool add_slab(struct packet_pool *pool)
{
    if (pool->slabs_count == (pool->is_small ? 1 : SIM_SLABS_MAX))
        return false;
    bool small = pool->slabs_count == 0;
    size_t packets = small ? SIM_FIRST_PACKETS : SIM_SLAB_PACKETS;
    struct sim_packet *slab = small ? aligned_alloc(_Alignof(struct sim_packet), packets * sizeof(*slab))
                                    : aligned_alloc(SIM_SLAB_BYTES, SIM_SLAB_BYTES);
    if (slab == NULL)
        return false;
    /* Only for speed, so it may fail: a fast link over an ocean keeps hundreds of MiB on the way. */
    if (!small)
        (void)madvise(slab, SIM_SLAB_BYTES, MADV_HUGEPAGE);
    pool->slabs[pool->slabs_count++] = slab;
    for (size_t i = packets; i > 0; i--)
        packet_pool_put(pool, &slab[i - 1]);
    return true;
}

struct sim_packet *packet_pool_get(struct packet_pool *pool)
{
    if (pool->free == NULL && !add_slab(pool))
        return NULL;
    struct sim_packet *packet = pool->free;
    pool->free = packet->next;
    packet->next = NULL;
    return packet;
}

void packet_pool_put(struct packet_pool *pool, struct sim_packet *packet)
{
    assert(packet != NULL);
    packet->next = pool->free;
    pool->free = packet;
}

void packet_pool_clear(struct packet_pool *pool)
{
    for (uint32_t i = 0; i < pool->slabs_count; i++)
        free(pool->slabs[i]);
    memset(pool, 0, sizeof(*pool));
}

struct sim_datagram sim_packet_view(struct sim_packet *packet, lh_time at_ns)
{
    return (struct sim_datagram){
        .at_ns = at_ns,
        .data = packet->data,
        .bytes = packet->bytes,
        .source_port = packet->source_port,
        .destination_port = packet->destination_port,
        .from = packet->from,
        .to = packet->to,
    };
}

void sim_packet_flip(struct sim_packet *packet, uint32_t bit)
{
    if (packet->bytes == 0)
        return;
    bit %= packet->bytes * BITS_PER_BYTE;
    packet->data[bit / BITS_PER_BYTE] ^= (uint8_t)(1u << bit % BITS_PER_BYTE);
}

bool sim_queue_push(struct sim_queue *queue, struct sim_packet *packet)
{
    if (queue->first != NULL && queue->bytes + packet->bytes > queue->bytes_max)
        return false;
    packet->next = NULL;
    if (queue->first == NULL)
        queue->first = packet;
    else
        queue->last->next = packet;
    queue->last = packet;
    queue->bytes += packet->bytes;
    return true;
}

struct sim_packet *sim_queue_pop(struct sim_queue *queue)
{
    struct sim_packet *packet = queue->first;
    if (packet == NULL)
        return NULL;
    assert(queue->bytes >= packet->bytes);
    queue->first = packet->next;
    queue->bytes -= packet->bytes;
    packet->next = NULL;
    return packet;
}
