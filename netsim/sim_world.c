/*
 * sim_world.c - the public handle of a simulated world: checks what callers inside assert.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/sim.h>

#include <stdlib.h>

#include <longhaul/connection.h>

#include "base/earlier.h"
#include "base/error.h"
#include "netsim/fabric/sim.h"
#include "netsim/run/run.h"
#include "netsim/simulation.h"

/* Steps of all connections at one moment; past it one of them asks for `now` for ever. */
#define STEPS_MAX 100000u

struct lh_sim_world {
    struct sim_world *inside;
    uint32_t hosts;
    bool has_network;
    bool stopped; /* the network's pool was used up: time does not go on */
};

static int check_network(struct lh_netsim *simulation, uint32_t hosts)
{
    const struct netsim *network = netsim_of(simulation);
    if (network->network.hosts_count < hosts)
        return lh_fail(LH_EINVAL, "simulated world: %u hosts, but the network has %u", hosts,
                       network->network.hosts_count);
    if (network->network.now_ps != 0 || network->runs_on)
        return lh_fail(LH_EINVAL, "simulated world: the network has run already (create another)");
    return 0;
}

int lh_sim_world_create(const struct lh_sim_attr *attr, struct lh_sim_world **out)
{
    uint32_t hosts = attr->hosts;
    if (hosts == 0)
        hosts = attr->network != NULL ? netsim_of(attr->network)->network.hosts_count : 2;
    if (attr->name == NULL)
        return lh_fail(LH_EINVAL, "simulated world: no name");
    if (hosts > LH_SIM_HOSTS_MAX)
        return lh_fail(LH_ERANGE, "simulated world '%s': %u hosts: out of range (1 to %u)", attr->name,
                       hosts, LH_SIM_HOSTS_MAX);
    int result = attr->network == NULL ? 0 : check_network(attr->network, hosts);
    if (result != 0)
        return result;
    struct lh_sim_world *world = malloc(sizeof *world);
    if (world == NULL)
        return lh_fail(LH_ENOMEM, "no memory for simulated world '%s'", attr->name);
    *world = (struct lh_sim_world){.hosts = hosts, .has_network = attr->network != NULL};
    result = sim_world_open(attr->name, hosts, attr->seed, &attr->link, &world->inside);
    if (result != 0) {
        free(world);
        return result;
    }
    if (attr->network != NULL)
        sim_world_set_network(world->inside, netsim_of(attr->network));
    *out = world;
    return 0;
}

void lh_sim_world_destroy(struct lh_sim_world *world)
{
    if (world == NULL)
        return;
    sim_world_destroy(world->inside);
    free(world);
}

lh_time lh_sim_world_now(struct lh_sim_world *world)
{
    return sim_world_now(world->inside);
}

lh_time lh_sim_world_next_event(struct lh_sim_world *world)
{
    return sim_world_next_event(world->inside);
}

int lh_sim_world_advance(struct lh_sim_world *world, lh_time to)
{
    if (to == LH_TIME_NEVER)
        return lh_fail(LH_EINVAL, "advance: the time is LH_TIME_NEVER (give one that comes)");
    if (to < sim_world_now(world->inside))
        return lh_fail(LH_EINVAL, "advance to %llu ns: it is %llu ns already", (unsigned long long)to,
                       (unsigned long long)sim_world_now(world->inside));
    if (world->has_network && to >= NETSIM_TIME_MAX / NETSIM_PS_PER_NS)
        return lh_fail(LH_ERANGE,
                       "advance to %llu ns: out of range (a world with a network ends at %llu ns)",
                       (unsigned long long)to, (unsigned long long)(NETSIM_TIME_MAX / NETSIM_PS_PER_NS));
    int result = sim_world_advance(world->inside, world->stopped ? sim_world_now(world->inside) : to);
    world->stopped = result != 0;
    return result;
}

int lh_sim_world_turn(struct lh_sim_world *world, struct lh_connection *const *connections, size_t count,
                      lh_time limit)
{
    lh_time now = sim_world_now(world->inside);
    lh_time next = now;
    for (uint32_t steps = 0; next <= now; steps++) {
        next = LH_TIME_NEVER;
        for (size_t i = 0; i < count; i++) {
            lh_time own = LH_TIME_NEVER;
            int result = connections[i] == NULL ? 0 : lh_progress(connections[i], &own);
            if (result != 0)
                return result;
            next = lh_earlier(next, own);
        }
        if (steps == STEPS_MAX)
            return lh_fail(LH_ESTATE, "a connection has something due at %llu ns for ever",
                           (unsigned long long)now);
    }
    next = lh_earlier(lh_earlier(next, sim_world_next_event(world->inside)), limit);
    if (next == LH_TIME_NEVER)
        return lh_fail(LH_EINVAL,
                       "turn: nothing is due, and the limit is LH_TIME_NEVER (give one that comes)");
    return lh_sim_world_advance(world, next);
}

int lh_sim_world_set_link(struct lh_sim_world *world, uint32_t from, uint32_t to,
                          const struct lh_link_spec *link)
{
    if (from >= world->hosts || to >= world->hosts)
        return lh_fail(LH_ERANGE, "hosts %u and %u: out of range (0 to %u)", from, to, world->hosts - 1);
    sim_world_set_direction(world->inside, from, to, link);
    return 0;
}

void lh_sim_world_counts(struct lh_sim_world *world, struct lh_sim_counts *counts)
{
    struct sim_counts inside = sim_world_counts(world->inside);
    *counts = (struct lh_sim_counts){
        .sent_packets = inside.sent,
        .delivered_packets = inside.delivered,
        .lost_packets = inside.lost,
        .overflowed_packets = inside.overflowed,
        .unknown_packets = inside.unknown,
    };
}

uint64_t lh_sim_world_trace(struct lh_sim_world *world)
{
    return sim_world_trace(world->inside);
}
