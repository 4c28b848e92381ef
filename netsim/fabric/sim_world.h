/*
 * sim_world.h - what a simulated world holds, and how its parts hand packets to each other. Not for tests:
 * see sim.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FABRIC_SIM_WORLD_H
#define LH_NETSIM_FABRIC_SIM_WORLD_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/link_spec.h"
#include "link/link_timeline.h"
#include "netsim/fabric/sim_packets.h"

struct sim_endpoint;

/* What is on the way from one host to another. */
struct sim_direction {
    struct lh_link_state link;
    struct timeline in_flight; /* of struct sim_packet */
    bool cut;
};

struct sim_host {
    struct sim_endpoint *
        *owner_of_port;     /* SIM_PORTS_MAX; index: port - SIM_PORT_FIRST. NULL: none was taken */
    uint32_t port_next;     /* where the search for free ports begins: a port is not used again soon */
    _Atomic bool own_clock; /* false: the world's */
    lh_time clock_from_ns;  /* the world's time when the clock was set, and what it showed then */
    lh_time clock_shown_ns;
    int32_t clock_skew_ppb;
};

struct sim_world {
    char name[SIM_WORLD_NAME_MAX];
    /* Recursive: a tap runs with it held and may inject. Guards all below but now_ns, which is only set
     * with it. */
    pthread_mutex_t lock;
    _Atomic lh_time now_ns;
    struct lh_prng prng; /* QP numbers, key salts */
    uint64_t link_seed;
    uint64_t link_changes;            /* each change of the links starts other draws */
    struct sim_direction *directions; /* hosts_count * hosts_count: sim_direction() */
    struct sim_direction **used;      /* those that ever carried a packet; as many at most */
    uint32_t used_count;
    uint64_t packets_created;
    struct packet_pool pool;
    struct sim_host *hosts;
    uint32_t hosts_count;
    uint32_t fabrics_open;
    struct netsim *network; /* between the hosts; NULL: only the links are */
    bool pool_used_up;      /* a packet was lost for want of one of the network's */
    sim_tap *tap;
    void *tap_context;
    sim_watch *watch;
    void *watch_context;
    sim_poll_share *poll_share;
    void *poll_share_context;
    struct sim_counts counts;
    uint64_t trace;
};

/* sim_world_open() without registering the fabric. */
int sim_world_make(const char *name, uint32_t hosts, uint64_t seed, const struct lh_link_spec *link,
                   struct sim_world **world);
/* The world of that name with one more fabric open in it, or NULL. Undone by sim_world_leave(). */
struct sim_world *sim_world_enter(const char *name, size_t name_bytes);
void sim_world_leave(struct sim_world *world);

static inline struct sim_direction *sim_direction(const struct sim_world *world, uint32_t from, uint32_t to)
{
    return &world->directions[(size_t)from * world->hosts_count + to];
}

/* The owner of a port of a host, or NULL. With the lock held, as all below. */
static inline struct sim_endpoint *sim_port_owner(const struct sim_host *host, uint32_t port)
{
    uint32_t index = port - SIM_PORT_FIRST;
    return port >= SIM_PORT_FIRST && index < SIM_PORTS_MAX && host->owner_of_port != NULL
               ? host->owner_of_port[index]
               : NULL;
}

/* Lets the packet arrive at arrive_ns. False when memory ran out; the caller keeps the packet then. */
bool sim_transit_start(struct sim_world *world, struct sim_packet *packet, lh_time arrive_ns);
/* What the host's clock shows at a moment of the world. */
lh_time sim_host_shows(const struct sim_host *host, lh_time at_ns);

/* When the next packet arrives. */
lh_time sim_transit_next_ns(const struct sim_world *world);

static inline lh_time sim_now(struct sim_world *world)
{
    return atomic_load_explicit(&world->now_ns, memory_order_relaxed);
}

/* What the host's clock shows now. Takes the lock only when the host has a clock of its own. */
lh_time sim_host_now(struct sim_world *world, uint32_t host);

static inline void sim_lock(struct sim_world *world)
{
    pthread_mutex_lock(&world->lock);
}

static inline void sim_unlock(struct sim_world *world)
{
    pthread_mutex_unlock(&world->lock);
}

#endif
