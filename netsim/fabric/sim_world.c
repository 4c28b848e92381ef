/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/fabric/sim_world.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/link_spec.h"
#include "link/link_timeline.h"
#include "netsim/fabric/sim_endpoint.h"
#include "netsim/fabric/sim_packets.h"

/* ---- host ------------------------------------------------------------------------------------------ */

/* What a simulated host has to itself: its clock, its ports, what waits in its queues. */

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

/* ---- world ----------------------------------------------------------------------------------------- */

/* A simulated world's life: the registry by name, its links, its taps and counters. */

/* Components of the world's generator. */
#define COMPONENT_IDENTITY 1u /* QP numbers, key salts */
#define COMPONENT_LINK     2u

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_world *registry[SIM_WORLDS_MAX];

/* With the registry's lock. SIM_WORLDS_MAX when there is none. */
static size_t registry_find(const char *name, size_t name_bytes)
{
    for (size_t i = 0; i < SIM_WORLDS_MAX; i++) {
        if (registry[i] != NULL && strlen(registry[i]->name) == name_bytes &&
            memcmp(registry[i]->name, name, name_bytes) == 0)
            return i;
    }
    return SIM_WORLDS_MAX;
}

/* 0 or a negative lh_error. */
static int registry_add(struct sim_world *world)
{
    size_t place = 0;
    pthread_mutex_lock(&registry_lock);
    bool taken = registry_find(world->name, strlen(world->name)) != SIM_WORLDS_MAX;
    while (place < SIM_WORLDS_MAX && registry[place] != NULL)
        place++;
    if (!taken && place < SIM_WORLDS_MAX)
        registry[place] = world;
    pthread_mutex_unlock(&registry_lock);
    if (taken)
        return lh_fail(LH_EINVAL, "simulated world '%s': already exists (choose another name)",
                       world->name);
    if (place == SIM_WORLDS_MAX)
        return lh_fail(LH_ENOMEM, "limit of %u simulated worlds reached (destroy one first)",
                       SIM_WORLDS_MAX);
    return 0;
}

/* Recursive, so that a tap, which runs with the lock held, may inject. */
static void lock_init(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(lock, &attr);
    pthread_mutexattr_destroy(&attr);
}

/* The link's own seed counts too, so that one world can be tried with many. */
static void link_start(struct sim_world *world, const struct lh_link_spec *spec, uint32_t from, uint32_t to)
{
    struct lh_link_spec seeded = *spec;
    seeded.seed ^= world->link_seed;
    /* Numbers of small worlds do not depend on how many hosts they have. */
    uint64_t stride = world->hosts_count > SIM_HOSTS_FEW ? world->hosts_count : SIM_HOSTS_FEW;
    uint64_t direction = (world->link_changes * stride + from) * stride + to;
    lh_link_state_init(&sim_direction(world, from, to)->link, &seeded, direction);
}

/* All of it in one piece, zero. NULL: no memory. */
static struct sim_world *allocate(uint32_t hosts)
{
    size_t pairs = (size_t)hosts * hosts;
    struct sim_world *world = calloc(1, sizeof *world + hosts * sizeof *world->hosts +
                                            pairs * (sizeof *world->directions + sizeof *world->used));
    if (world == NULL)
        return NULL;
    world->hosts_count = hosts;
    world->hosts = (struct sim_host *)(world + 1);
    world->directions = (struct sim_direction *)(world->hosts + hosts);
    world->used = (struct sim_direction **)(world->directions + pairs);
    return world;
}

static bool is_valid_name(const char *name)
{
    size_t bytes = strlen(name);
    return bytes > 0 && bytes < SIM_WORLD_NAME_MAX && strchr(name, '/') == NULL;
}

static void start(struct sim_world *world, uint64_t seed, const struct lh_link_spec *link)
{
    struct lh_prng root;
    lock_init(&world->lock);
    lh_prng_seed(&root, seed);
    world->prng = lh_prng_fork(&root, COMPONENT_IDENTITY);
    struct lh_prng links = lh_prng_fork(&root, COMPONENT_LINK);
    world->link_seed = lh_prng_next(&links);
    sim_world_set_link(world, link);
}

int sim_world_make(const char *name, uint32_t hosts, uint64_t seed, const struct lh_link_spec *link,
                   struct sim_world **out)
{
    if (!is_valid_name(name))
        return lh_fail(LH_EINVAL, "simulated world '%s': invalid name (1 to %u characters, no '/')", name,
                       SIM_WORLD_NAME_MAX - 1);
    if (hosts == 0 || hosts > SIM_HOSTS_MAX)
        return lh_fail(LH_ERANGE, "simulated world '%s': %u hosts: out of range (1 to %u)", name, hosts,
                       SIM_HOSTS_MAX);
    struct sim_world *world = allocate(hosts);
    if (world == NULL)
        return lh_fail(LH_ENOMEM, "no memory for simulated world '%s'", name);
    memcpy(world->name, name, strlen(name));
    start(world, seed, link);
    int result = registry_add(world);
    if (result != 0) {
        sim_world_destroy(world);
        return result;
    }
    *out = world;
    return 0;
}

void sim_world_destroy(struct sim_world *world)
{
    pthread_mutex_lock(&registry_lock);
    for (size_t i = 0; i < SIM_WORLDS_MAX; i++) {
        if (registry[i] == world)
            registry[i] = NULL;
    }
    pthread_mutex_unlock(&registry_lock);
    assert(world->fabrics_open == 0);
    for (uint32_t i = 0; i < world->used_count; i++)
        timeline_clear(&world->used[i]->in_flight);
    packet_pool_clear(&world->pool);
    for (uint32_t host = 0; host < world->hosts_count; host++)
        free(world->hosts[host].owner_of_port);
    pthread_mutex_destroy(&world->lock);
    free(world);
}

struct sim_world *sim_world_enter(const char *name, size_t name_bytes)
{
    struct sim_world *world = NULL;
    pthread_mutex_lock(&registry_lock);
    size_t place = registry_find(name, name_bytes);
    if (place != SIM_WORLDS_MAX) {
        world = registry[place];
        sim_lock(world);
        world->fabrics_open++;
        sim_unlock(world);
    }
    pthread_mutex_unlock(&registry_lock);
    return world;
}

void sim_world_leave(struct sim_world *world)
{
    sim_lock(world);
    assert(world->fabrics_open > 0);
    world->fabrics_open--;
    sim_unlock(world);
}

lh_time sim_world_now(struct sim_world *world)
{
    return sim_now(world);
}

/* What waits for the bottleneck still has to pass it. */
static void link_change(struct sim_world *world, const struct lh_link_spec *link, uint32_t from,
                        uint32_t to)
{
    const struct lh_link_spec none = {0};
    struct lh_link_state *state = &sim_direction(world, from, to)->link;
    lh_time busy_until_ns = state->bottleneck_free_ns;
    link_start(world, link != NULL ? link : &none, from, to);
    state->bottleneck_free_ns = busy_until_ns;
}

void sim_world_set_link(struct sim_world *world, const struct lh_link_spec *link)
{
    sim_lock(world);
    for (uint32_t from = 0; from < world->hosts_count; from++) {
        for (uint32_t to = 0; to < world->hosts_count; to++)
            link_change(world, link, from, to);
    }
    world->link_changes++;
    sim_unlock(world);
}

void sim_world_set_direction(struct sim_world *world, uint32_t from, uint32_t to,
                             const struct lh_link_spec *link)
{
    assert(from < world->hosts_count && to < world->hosts_count);
    sim_lock(world);
    link_change(world, link, from, to);
    world->link_changes++;
    sim_unlock(world);
}

void sim_world_cut(struct sim_world *world, uint32_t from, uint32_t to, bool cut)
{
    assert(from < world->hosts_count && to < world->hosts_count);
    sim_lock(world);
    sim_direction(world, from, to)->cut = cut;
    sim_unlock(world);
}

void sim_world_partition(struct sim_world *world, bool cut)
{
    for (uint32_t from = 0; from < world->hosts_count; from++) {
        for (uint32_t to = 0; to < world->hosts_count; to++)
            sim_world_cut(world, from, to, cut);
    }
}

void sim_world_few_packets(struct sim_world *world)
{
    sim_lock(world);
    assert(world->pool.slabs_count == 0);
    world->pool.is_small = true;
    sim_unlock(world);
}

void sim_world_tap(struct sim_world *world, sim_tap *tap, void *context)
{
    sim_lock(world);
    world->tap = tap;
    world->tap_context = context;
    sim_unlock(world);
}

void sim_world_watch(struct sim_world *world, sim_watch *watch, void *context)
{
    sim_lock(world);
    world->watch = watch;
    world->watch_context = context;
    sim_unlock(world);
}

void sim_world_poll_share(struct sim_world *world, sim_poll_share *share, void *context)
{
    sim_lock(world);
    world->poll_share = share;
    world->poll_share_context = context;
    sim_unlock(world);
}

struct sim_counts sim_world_counts(struct sim_world *world)
{
    sim_lock(world);
    struct sim_counts counts = world->counts;
    sim_unlock(world);
    return counts;
}

uint64_t sim_world_trace(struct sim_world *world)
{
    sim_lock(world);
    uint64_t trace = world->trace;
    sim_unlock(world);
    return trace;
}
