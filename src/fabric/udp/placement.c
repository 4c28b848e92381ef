/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/placement.h"

#include <assert.h>

#include "base/bitmap.h"

struct walk {
    const struct placement *placement;
    const struct rx_table *table;
    uint8_t **places;
    uint32_t count;
    uint32_t max;
    uint32_t steps; /* left */
};

void placement_init(struct placement *placement, uint32_t channel)
{
    *placement = (struct placement){.channel = channel};
}

void placement_on_bind(struct placement *placement, uint32_t slot)
{
    if (placement->slot == slot) {
        placement->usual = placement->extent;
        placement->extent = 0;
        placement->packet = 0;
    }
    if (placement->floor_slot == slot)
        placement->floor_packet = 0;
}

void placement_on_poll(struct placement *placement)
{
    placement->floor_slot = placement->slot;
    placement->floor_packet = placement->packet;
}

/* The first packet at or after this one that travels on the channel. */
static uint64_t on_channel(const struct placement *placement, const struct fabric_endpoint_attr *attr,
                           uint64_t packet)
{
    if (attr->channels == 1)
        return packet;
    uint64_t stripe = packet / attr->stripe_packets;
    uint32_t channel = (uint32_t)(stripe % attr->channels);
    if (channel == placement->channel)
        return packet;
    uint32_t ahead = (placement->channel + attr->channels - channel) % attr->channels;
    return (stripe + ahead) * attr->stripe_packets;
}

void placement_on_packet(struct placement *placement, const struct rx_table *table, uint32_t slot,
                         uint32_t packet)
{
    if (slot != placement->slot) {
        /* A repair of an older message shows no length; the first packet of another one does. */
        if (packet == on_channel(placement, &table->attr, 0))
            placement->usual = placement->extent;
        placement->extent = 0;
    }
    if (packet >= placement->extent)
        placement->extent = packet + 1;
    placement->slot = slot;
    placement->packet = packet + 1;
}

/* Of a message that may turn out shorter than its buffer nothing lands behind its end. */
static uint64_t expected_bytes(const struct fabric_slot *bound)
{
    return bound->expected == NULL ? bound->length_bytes
                                   : atomic_load_explicit(bound->expected, memory_order_relaxed);
}

/* Adds the missing full packets among [from, end) of a slot that travel on the channel. */
static void walk_slot(struct walk *walk, uint32_t slot, uint64_t from, uint64_t end)
{
    const struct fabric_endpoint_attr *attr = &walk->table->attr;
    const struct fabric_slot *bound = &walk->table->slots[slot].bound;
    uint64_t full = expected_bytes(bound) / attr->mtu_bytes;
    if (end > full)
        end = full;
    /* Until the usual length only, unless this message has shown itself to be longer. */
    if (end > walk->placement->usual && from < walk->placement->usual)
        end = walk->placement->usual;
    uint64_t packet = on_channel(walk->placement, attr, from);
    while (packet < end && walk->count < walk->max && walk->steps > 0) { /* bounded by steps */
        walk->steps--;
        uint64_t word = atomic_load_explicit(&bound->received[packet / 64], memory_order_relaxed);
        if (word == UINT64_MAX) {
            packet = on_channel(walk->placement, attr, (packet | 63) + 1);
            continue;
        }
        if (((word >> (packet % 64)) & 1) == 0)
            walk->places[walk->count++] = bound->base + packet * attr->mtu_bytes;
        packet = on_channel(walk->placement, attr, packet + 1);
    }
}

/* How far ahead of the cursor's slot the next open slot is, past `after`; more than `slots` when there is
 * none. */
static uint32_t next_open(const struct walk *walk, const uint64_t *open, uint32_t after)
{
    uint32_t slots = walk->table->attr.slots;
    uint32_t start = walk->placement->slot;
    if (start + after + 1 < slots) {
        size_t slot = lh_bitmap_next_set(open, slots, start + after + 1);
        if (slot < slots)
            return (uint32_t)slot - start;
        after = slots - start - 1;
    }
    size_t slot = lh_bitmap_next_set(open, slots, start + after + 1 - slots);
    return slot <= start ? (uint32_t)slot + slots - start : slots + 1;
}

uint32_t placement_list(const struct placement *placement, const struct rx_table *table,
                        const uint64_t *open, uint8_t **places, uint32_t max)
{
    uint32_t slots = table->attr.slots;
    assert(placement->slot < slots && placement->floor_slot < slots);
    if (table->slots == NULL)
        return 0;
    struct walk walk = {placement, table, places, 0, max, PLACEMENT_STEPS_MAX};
    bool cursor_open = table->slots[placement->slot].open;

    uint32_t reach = (placement->floor_slot + slots - placement->slot) % slots;
    if (reach == 0 &&
        placement->packet < placement->floor_packet) { /* came round to the floor's own slot */
        if (cursor_open)
            walk_slot(&walk, placement->slot, placement->packet, placement->floor_packet);
        return walk.count;
    }
    if (reach == 0)
        reach = slots;
    if (cursor_open)
        walk_slot(&walk, placement->slot, placement->packet, UINT64_MAX);
    /* At most `slots` rounds: the distance grows. */
    for (uint32_t ahead = next_open(&walk, open, 0); ahead <= reach && walk.count < max && walk.steps > 0;
         ahead = next_open(&walk, open, ahead)) {
        uint64_t end = ahead == reach ? placement->floor_packet : UINT64_MAX;
        walk_slot(&walk, (placement->slot + ahead) % slots, 0, end);
    }
    return walk.count;
}
