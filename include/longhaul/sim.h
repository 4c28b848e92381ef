/*
 * sim.h - a simulated network in virtual time, for connections: hosts, links between them, switches.
 *
 * Host h of a world is the device "sim:<world>/<h>" of lh_open(); connections to it are opened without
 * workers (LH_NO_WORKERS) and closed before the world is destroyed. The protocol runs as it does anywhere
 * else, with every packet encoded and checked. Time stands still but for lh_sim_world_advance() and
 * lh_sim_world_turn(): what happens follows from the seed and the order of calls, and is the same each time
 * when one thread makes them all.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_SIM_H
#define LONGHAUL_SIM_H

#include <longhaul/error.h>
#include <longhaul/link.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lh_connection;
struct lh_netsim;
struct lh_sim_world;

#define LH_SIM_HOSTS_MAX 128

struct lh_sim_attr {
    const char *name;         /* 1 to 31 characters, no '/'; no other world has it */
    uint32_t hosts;           /* up to LH_SIM_HOSTS_MAX; 0: 2, or as many as the network has */
    uint64_t seed;            /* of losses and all else that is random */
    struct lh_link_spec link; /* in each direction between each two hosts; all zero: none */
    /* Switches between the hosts: host h of the world is host h of this simulation, which has not run yet.
     * A packet crosses the link, then the switches. The caller owns it, keeps it as long as the world, and
     * does not call lh_netsim_run(): the world moves its time. Its own flows run beside. NULL: none */
    struct lh_netsim *network;
};

/* -LH_EINVAL: the name, or the network has fewer hosts or has run; -LH_ERANGE: hosts; -LH_ENOMEM; or what
 * lh_fabric_register() returns. */
LH_API int lh_sim_world_create(const struct lh_sim_attr *attr, struct lh_sim_world **world);
/* Every connection in it is closed before. NULL is allowed. */
LH_API void lh_sim_world_destroy(struct lh_sim_world *world);

/* Nanoseconds of virtual time since the world was created. */
LH_API lh_time lh_sim_world_now(struct lh_sim_world *world);
/* When a packet arrives, or something happens in the network; LH_TIME_NEVER: nothing is in flight. */
LH_API lh_time lh_sim_world_next_event(struct lh_sim_world *world);
/* Moves time to `to`; what arrives until then waits at its host. -LH_EINVAL: in the past, or never;
 * -LH_ERANGE: with a network, 106 days (2^63 - 1 ps) or more; -LH_ENOMEM: more than run.packets packets in
 * the network: time has stopped there, for good. */
LH_API int lh_sim_world_advance(struct lh_sim_world *world, lh_time to);
/* Lets each connection do what is due now (lh_progress()), then moves time to the next event of these
 * connections and of the world, at most to `limit`. Entries of NULL are skipped. What lh_progress() returns
 * when it fails; -LH_ESTATE when a connection has something due at the same moment for ever; -LH_EINVAL
 * when nothing is due and the limit is LH_TIME_NEVER; otherwise as lh_sim_world_advance(). */
LH_API int lh_sim_world_turn(struct lh_sim_world *world, struct lh_connection *const *connections,
                             size_t count, lh_time limit);

/* Changes the link of one direction from now on; packets in flight keep their fate. -LH_ERANGE: no such
 * host. */
LH_API int lh_sim_world_set_link(struct lh_sim_world *world, uint32_t from, uint32_t to,
                                 const struct lh_link_spec *link);

struct lh_sim_counts {
    uint64_t sent_packets;       /* that hosts sent: data and control */
    uint64_t delivered_packets;  /* into a receive queue */
    uint64_t lost_packets;       /* by links and in the network */
    uint64_t overflowed_packets; /* the receive queue was full */
    uint64_t unknown_packets;    /* nothing listens at their port */
};
LH_API void lh_sim_world_counts(struct lh_sim_world *world, struct lh_sim_counts *counts);
/* A hash of all arrivals so far: two runs that are the same have the same. */
LH_API uint64_t lh_sim_world_trace(struct lh_sim_world *world);

#ifdef __cplusplus
}
#endif
#endif
