/*
 * host.c - what a simulated host has to itself: its clock, its ports, what waits in its queues.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/fabric/sim.h"

#include <assert.h>

#include "netsim/fabric/endpoint.h"

__extension__ typedef __int128 int128;

#define PPB 1000000000

lh_time sim_host_shows(const struct sim_host *host, lh_time at_ns)
{
    if (at_ns == LH_TIME_NEVER || !atomic_load_explicit(&host->own_clock, memory_order_relaxed))
        return at_ns;
    assert(at_ns >= host->clock_from_ns);
    int128 passed = (int128)(at_ns - host->clock_from_ns);
    int128 shown = (int128)host->clock_shown_ns + passed * (PPB + host->clock_skew_ppb) / PPB;
    return shown < (int128)LH_TIME_NEVER ? (lh_time)shown : LH_TIME_NEVER;
}

lh_time sim_host_now(struct sim_world *world, uint32_t number)
{
    const struct sim_host *host = &world->hosts[number];
    if (!atomic_load_explicit(&host->own_clock, memory_order_acquire))
        return sim_now(world);
    sim_lock(world);
    lh_time shown_ns = sim_host_shows(host, sim_now(world));
    sim_unlock(world);
    return shown_ns;
}

/* From now on it shows `shown_ns` and goes on from there. With the lock held. */
static void start_clock(struct sim_world *world, struct sim_host *host, lh_time shown_ns, int32_t skew_ppb)
{
    assert(shown_ns >= sim_host_shows(host, sim_now(world)));
    host->clock_from_ns = sim_now(world);
    host->clock_shown_ns = shown_ns;
    host->clock_skew_ppb = skew_ppb;
    atomic_store_explicit(&host->own_clock, true, memory_order_release);
}

void sim_world_set_clock(struct sim_world *world, uint32_t host, const struct sim_clock *clock)
{
    assert(host < world->hosts_count && clock->skew_ppb > -PPB);
    sim_lock(world);
    start_clock(world, &world->hosts[host], sim_now(world) + clock->ahead_ns, clock->skew_ppb);
    sim_unlock(world);
}

void sim_world_jump_clock(struct sim_world *world, uint32_t number, lh_time forward_ns)
{
    assert(number < world->hosts_count);
    struct sim_host *host = &world->hosts[number];
    sim_lock(world);
    int32_t skew_ppb = atomic_load(&host->own_clock) ? host->clock_skew_ppb : 0;
    start_clock(world, host, sim_host_shows(host, sim_now(world)) + forward_ns, skew_ppb);
    sim_unlock(world);
}

lh_time sim_world_host_now(struct sim_world *world, uint32_t host)
{
    assert(host < world->hosts_count);
    return sim_host_now(world, host);
}

/* The first moment at which the clock shows that much: as it shows whole nanoseconds rounded down, the
 * inverse rounded up. */
static lh_time first_moment(const struct sim_host *host, lh_time shown_ns)
{
    assert(shown_ns >= host->clock_shown_ns);
    int128 speed = PPB + host->clock_skew_ppb;
    int128 passed = ((int128)(shown_ns - host->clock_shown_ns) * PPB + speed - 1) / speed;
    return passed < (int128)(LH_TIME_NEVER - host->clock_from_ns) ? host->clock_from_ns + (lh_time)passed
                                                                  : LH_TIME_NEVER;
}

lh_time sim_world_host_when(struct sim_world *world, uint32_t number, lh_time shown_ns)
{
    assert(number < world->hosts_count);
    const struct sim_host *host = &world->hosts[number];
    sim_lock(world);
    lh_time at_ns = sim_now(world);
    if (!atomic_load(&host->own_clock))
        at_ns = shown_ns > at_ns ? shown_ns : at_ns;
    else if (shown_ns == LH_TIME_NEVER)
        at_ns = LH_TIME_NEVER;
    else if (sim_host_shows(host, at_ns) < shown_ns)
        at_ns = first_moment(host, shown_ns);
    sim_unlock(world);
    return at_ns;
}

void sim_world_next_port(struct sim_world *world, uint32_t host, uint16_t port)
{
    assert(host < world->hosts_count && port >= SIM_PORT_FIRST && port - SIM_PORT_FIRST < SIM_PORTS_MAX);
    sim_lock(world);
    world->hosts[host].port_next = port - SIM_PORT_FIRST;
    sim_unlock(world);
}

bool sim_world_waiting(struct sim_world *world, uint32_t host, uint16_t port, uint64_t *bytes,
                       uint64_t *bytes_max)
{
    assert(host < world->hosts_count);
    sim_lock(world);
    const struct sim_endpoint *endpoint = sim_port_owner(&world->hosts[host], port);
    if (endpoint != NULL) {
        const struct sim_queue *queue = &endpoint->paths[port - endpoint->paths[0].port].arrived;
        *bytes = queue->bytes;
        *bytes_max = queue->bytes_max;
    }
    sim_unlock(world);
    return endpoint != NULL;
}
