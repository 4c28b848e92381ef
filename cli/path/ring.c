/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/path/ring.h"

#include <assert.h>
#include <sys/mman.h>

static size_t stride_of(size_t bytes)
{
    return (sizeof(struct path_packet) + bytes + 15) & ~(size_t)15;
}

static struct path_packet *at(const struct path_ring *ring, size_t offset)
{
    return (struct path_packet *)(void *)(ring->memory + offset);
}

bool path_ring_open(struct path_ring *ring, size_t capacity, size_t packet_max)
{
    /* Two of the largest packets: the unused end before the start is used again, and what parts full
     * from empty. */
    *ring = (struct path_ring){.size = capacity + 2 * stride_of(packet_max) + 16, .packet_max = packet_max};
    /* Pages are taken when packets reach them. */
    void *memory =
        mmap(NULL, ring->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ring->memory = memory == MAP_FAILED ? NULL : memory;
    return ring->memory;
}

void path_ring_close(struct path_ring *ring)
{
    if (ring->memory)
        munmap(ring->memory, ring->size);
    ring->memory = NULL;
}

/* Packets lie in [head, tail), or in [head, end) and [0, tail). The mark of an end needs a header's
 * room. */
struct path_packet *path_ring_space(struct path_ring *ring)
{
    size_t need = stride_of(ring->packet_max) + sizeof(struct path_packet);
    if (ring->head == ring->tail)
        ring->head = ring->tail = 0;
    if (ring->tail < ring->head)
        return ring->head - ring->tail > need ? at(ring, ring->tail) : NULL;
    if (ring->size - ring->tail >= need)
        return at(ring, ring->tail);
    if (ring->head <= need)
        return NULL;
    at(ring, ring->tail)->stride = 0;
    ring->tail = 0;
    return at(ring, 0);
}

void path_ring_push(struct path_ring *ring, struct path_packet *packet)
{
    assert(packet == at(ring, ring->tail) && packet->bytes <= ring->packet_max);
    packet->stride = (uint32_t)stride_of(packet->bytes);
    ring->tail += packet->stride;
}

static struct path_packet *packet_at(const struct path_ring *ring, size_t offset)
{
    if (offset == ring->tail)
        return NULL;
    if (offset > ring->tail && at(ring, offset)->stride == 0)
        return ring->tail ? at(ring, 0) : NULL;
    return at(ring, offset);
}

struct path_packet *path_ring_first(const struct path_ring *ring)
{
    return packet_at(ring, ring->head);
}

struct path_packet *path_ring_next(const struct path_ring *ring, const struct path_packet *packet)
{
    return packet_at(ring, (size_t)((const uint8_t *)packet - ring->memory) + packet->stride);
}

void path_ring_pop(struct path_ring *ring)
{
    struct path_packet *first = path_ring_first(ring);
    assert(first);
    ring->head = (size_t)((uint8_t *)first - ring->memory) + first->stride;
}
