/*
 * bifrost_world.c - see bifrost_world.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/bifrost_world.h"

#include <assert.h>
#include <string.h>

static uint64_t minimum(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void bifrost_world_init(struct bifrost_world *world, const struct lh_bifrost_config *config, bool by_grants)
{
    memset(world, 0, sizeof *world);
    world->slots = lh_bifrost_grants(config);
    assert(world->slots <= BIFROST_WORLD_GRANTS);
    lh_bifrost_init(&world->port, config, by_grants ? world->port_grants : NULL);
    world->slot_bytes = (config->rate_bps * config->slot_ns + 7999999999u) / 8000000000u;
    world->delta_bytes = config->delta_bytes;
    for (uint32_t i = 0; i < world->slots; i++)
        world->sent[i] = (uint32_t)world->slot_bytes;
}

/* In the slot that ends now there came the end of the oldest window, of `first` bytes in [0, rest), and the
 * beginning of the next one, of which `second` bytes came in [rest, slot). */
static void arrivals(const struct bifrost_world *world, uint64_t *first, uint64_t *second)
{
    uint64_t rest = world->delta_bytes % world->slot_bytes;
    uint64_t next = world->sent[(world->oldest + 1) % world->slots];
    *first = minimum(world->sent[world->oldest], rest);
    *second = next > rest ? next - rest : 0;
}

/* Draining at the full rate from the slot's beginning, it would have run dry where the next byte is late:
 * just before `first` begins to come, before `second` does, or at the end. */
static bool runs_dry(const struct bifrost_world *world, uint64_t first, uint64_t second, uint64_t drain)
{
    uint64_t rest = world->delta_bytes % world->slot_bytes;
    uint64_t queue = world->queue_bytes;
    if (queue < minimum(drain, rest - first))
        return true;
    if (queue + first < minimum(drain, world->slot_bytes - second))
        return true;
    return queue + first + second < drain;
}

static void look(struct bifrost_world *world, uint64_t came, bool dry)
{
    uint64_t sum = world->queue_bytes + world->port.incoming_bytes;
    world->dry_slots += dry;
    world->most_bytes = world->most_bytes > came ? world->most_bytes : came;
    world->over_slots += sum > world->port.buffer_bytes;
    world->under_slots += sum < world->delta_bytes + world->slot_bytes;
    world->slots_done++;
}

/* The slot up to what the port says at its end. Returns what that grants. */
static uint64_t downstream(struct bifrost_world *world, uint64_t drain_bytes)
{
    uint64_t first = 0;
    uint64_t second = 0;
    assert(drain_bytes <= world->slot_bytes);
    arrivals(world, &first, &second);
    bool dry = runs_dry(world, first, second, drain_bytes);
    uint64_t came = world->queue_bytes + first + second;
    world->given_bytes += minimum(came, drain_bytes);
    world->queue_bytes = came - minimum(came, drain_bytes);
    uint32_t quanta = lh_bifrost_on_slot(&world->port, world->queue_bytes, first + second);
    look(world, came, dry);
    return world->slot_bytes - minimum((uint64_t)quanta * LH_PFC_QUANTUM_BYTES, world->slot_bytes);
}

static void upstream(struct bifrost_world *world, uint64_t bytes)
{
    world->sent[world->oldest] = (uint32_t)bytes;
    world->oldest = (world->oldest + 1) % world->slots;
}

uint64_t bifrost_world_slot(struct bifrost_world *world, uint64_t drain_bytes, uint64_t upstream_bytes,
                            uint64_t leak_bytes)
{
    uint64_t granted = downstream(world, drain_bytes);
    uint64_t paused = world->slot_bytes - granted;
    uint64_t leaks = granted > 0 && paused > 0 ? minimum(leak_bytes, paused) : 0;
    world->lost = 0;
    upstream(world, minimum(granted, upstream_bytes) + leaks);
    return granted;
}

void bifrost_world_deaf_slot(struct bifrost_world *world, uint64_t drain_bytes)
{
    downstream(world, drain_bytes);
    world->lost++;
    if (world->guard_slots == 0 || world->lost < world->guard_slots)
        upstream(world, world->slot_bytes);
    else
        upstream(world,
                 world->lost == world->guard_slots ? minimum(world->slack_bytes, world->slot_bytes) : 0);
}
