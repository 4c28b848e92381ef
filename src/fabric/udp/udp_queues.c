/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/inbox.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SLAB_PACKETS 16u

/* The packets follow. */
struct udp_packet_slab {
    struct udp_packet_slab *next;
};

/* Of a packet in a slab. */
static size_t stride_of(const struct udp_packet_pool *pool)
{
    const size_t align = _Alignof(struct udp_packet);
    return (sizeof(struct udp_packet) + pool->packet_bytes + align - 1) / align * align;
}

void udp_pool_free(struct udp_packet_pool *pool)
{
    assert(atomic_load_explicit(&pool->in_use, memory_order_relaxed) == 0);
    while (pool->slabs != NULL) { /* at most UDP_POOL_PACKETS / SLAB_PACKETS */
        struct udp_packet_slab *slab = pool->slabs;
        pool->slabs = slab->next;
        free(slab);
    }
    *pool = (struct udp_packet_pool){.packet_bytes = pool->packet_bytes};
}

/* Whether the list was empty. Once it is in, the packet is another thread's. */
static bool push(_Atomic(struct udp_packet *) *list, struct udp_packet *packet)
{
    struct udp_packet *newest = atomic_load_explicit(list, memory_order_relaxed);
    do { /* until no other thread was faster */
        packet->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(list, &newest, packet, memory_order_release,
                                                    memory_order_relaxed));
    return newest == NULL;
}

static void add_slab(struct udp_packet_pool *pool)
{
    if (pool->made + SLAB_PACKETS > UDP_POOL_PACKETS)
        return;
    size_t stride = stride_of(pool);
    struct udp_packet_slab *slab = malloc(sizeof *slab + SLAB_PACKETS * stride);
    if (slab == NULL)
        return;
    slab->next = pool->slabs;
    pool->slabs = slab;
    pool->made += SLAB_PACKETS;
    for (uint32_t i = 0; i < SLAB_PACKETS; i++) {
        struct udp_packet *packet = (struct udp_packet *)((uint8_t *)(slab + 1) + i * stride);
        packet->next = pool->spare;
        pool->spare = packet;
    }
}

static struct udp_packet *take_spare(struct udp_packet_pool *pool)
{
    if (pool->spare == NULL)
        pool->spare = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
    if (pool->spare == NULL)
        add_slab(pool);
    struct udp_packet *packet = pool->spare;
    if (packet == NULL)
        return NULL;
    pool->spare = packet->next;
    atomic_fetch_add_explicit(&pool->in_use, 1, memory_order_relaxed);
    return packet;
}

bool udp_pool_has_room(struct udp_packet_pool *pool, uint32_t patience)
{
    uint32_t in_use = atomic_load_explicit(&pool->in_use, memory_order_relaxed);
    if (in_use < UDP_POOL_PACKETS / 2) {
        pool->held_at = 0;
        return true;
    }
    bool taken = pool->held_at == 0 || in_use < pool->held_at;
    pool->held_asks = taken ? 0 : pool->held_asks + 1;
    bool full = pool->held_asks < patience;
    pool->held_at = full ? in_use : 0;
    return !full;
}

bool udp_inbox_has_room(struct udp_packet_pool *pool, struct udp_inbox *inbox, uint32_t packets)
{
    uint32_t free_packets = UDP_POOL_PACKETS - atomic_load_explicit(&pool->in_use, memory_order_relaxed);
    return udp_inbox_waiting(inbox) + packets <= (free_packets + UDP_INBOX_SHARE - 1) / UDP_INBOX_SHARE;
}

enum udp_put udp_inbox_put(struct udp_packet_pool *pool, struct udp_inbox *inbox,
                           const struct udp_part *part)
{
    assert(part->bytes <= pool->packet_bytes);
    struct udp_packet *packet = udp_inbox_has_room(pool, inbox, 1) ? take_spare(pool) : NULL;
    if (packet == NULL)
        return UDP_PUT_REFUSED;
    packet->from = *part->from;
    packet->bytes = part->bytes;
    packet->place = part->place;
    packet->marked = part->marked;
    memcpy(packet->data, part->data, part->bytes);
    atomic_fetch_add_explicit(&inbox->waiting, 1, memory_order_relaxed);
    return push(&inbox->fresh, packet) ? UDP_PUT_FIRST : UDP_PUT_MORE;
}

/* The newest-first list, oldest first. */
static struct udp_packet *reversed(struct udp_packet *newest)
{
    struct udp_packet *oldest = NULL;
    while (newest != NULL) { /* at most UDP_POOL_PACKETS */
        struct udp_packet *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

struct udp_packet *udp_inbox_take(struct udp_inbox *inbox)
{
    if (inbox->oldest == NULL) {
        if (atomic_load_explicit(&inbox->fresh, memory_order_relaxed) == NULL)
            return NULL;
        inbox->oldest = reversed(atomic_exchange_explicit(&inbox->fresh, NULL, memory_order_acquire));
    }
    struct udp_packet *packet = inbox->oldest;
    inbox->oldest = packet->next;
    atomic_fetch_sub_explicit(&inbox->waiting, 1, memory_order_relaxed);
    return packet;
}

void udp_packet_return(struct udp_packet_pool *pool, struct udp_packet *packet)
{
    atomic_fetch_sub_explicit(&pool->in_use, 1, memory_order_relaxed);
    push(&pool->returned, packet);
}

void udp_inbox_clear(struct udp_packet_pool *pool, struct udp_inbox *inbox)
{
    struct udp_packet *packet;
    while ((packet = udp_inbox_take(inbox)) != NULL) /* at most UDP_POOL_PACKETS */
        udp_packet_return(pool, packet);
}
