/*
 * sim.h - a simulated network in virtual time, for connections: hosts, links between them, switches.
 *
 * Host h of a world is the device "sim:<world>/<h>" for lh_open(). Open its connections without workers
 * (LH_NO_WORKERS), and close them before the world is destroyed. The protocol runs unchanged, and encodes and
 * checks every packet. Only lh_sim_world_advance() and lh_sim_world_turn() advance time. If one thread makes
 * all calls, runs with the same seed and the same calls are identical.
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
    const char *name;         /* 1 to 31 characters, no '/'; unique */
    uint32_t hosts;           /* up to LH_SIM_HOSTS_MAX; 0: 2, or the network's number */
    uint64_t seed;            /* of losses and all other random events */
    struct lh_link_spec link; /* in each direction between any two hosts; all zero: none */
    /* Network of switches between the hosts: host h of the world is host h of this simulation, which must not
     * have run yet. A packet crosses the link, then the switches. The caller owns the simulation, keeps it as
     * long as the world, and does not call lh_netsim_run(): the world advances its time. Its own flows run as
     * well. NULL: none */
    struct lh_netsim *network;
};

/* Creates a world. -LH_EINVAL: the name is invalid, or the network has fewer hosts or has run; -LH_ERANGE:
 * hosts; -LH_ENOMEM; the errors of lh_fabric_register(). */
LH_API int lh_sim_world_create(const struct lh_sim_attr *attr, struct lh_sim_world **world);
/* Destroys a world. Close all its connections first. NULL is allowed. */
LH_API void lh_sim_world_destroy(struct lh_sim_world *world);

/* Returns the nanoseconds of virtual time since the world was created. */
LH_API lh_time lh_sim_world_now(struct lh_sim_world *world);
/* Returns the time of the next arrival or network event; LH_TIME_NEVER: nothing is in flight. */
LH_API lh_time lh_sim_world_next_event(struct lh_sim_world *world);
/* Advances time to `to`; packets that arrive until then wait at their hosts. -LH_EINVAL: `to` is in the past,
 * or LH_TIME_NEVER; -LH_ERANGE: with a network, 106 days (2^63 - 1 ps) or more; -LH_ENOMEM: more than
 * run.packets packets are in the network, and time cannot advance any further. */
LH_API int lh_sim_world_advance(struct lh_sim_world *world, lh_time to);
/* Makes progress on each connection (lh_progress()), then advances time to the next event of these
 * connections or of the world, at most to `limit`. connections: NULL entries are skipped. Errors: those of
 * lh_progress() and of lh_sim_world_advance(); -LH_ESTATE: a connection never finishes its work at one time;
 * -LH_EINVAL: there is no next event, and the limit is LH_TIME_NEVER. */
LH_API int lh_sim_world_turn(struct lh_sim_world *world, struct lh_connection *const *connections,
                             size_t count, lh_time limit);

/* Changes the link of one direction for packets sent from now on; packets in flight are not affected.
 * -LH_ERANGE: no such host. */
LH_API int lh_sim_world_set_link(struct lh_sim_world *world, uint32_t from, uint32_t to,
                                 const struct lh_link_spec *link);

struct lh_sim_counts {
    uint64_t sent_packets;       /* by hosts: data and control */
    uint64_t delivered_packets;  /* into a receive queue */
    uint64_t lost_packets;       /* by links and in the network */
    uint64_t overflowed_packets; /* the receive queue was full */
    uint64_t unknown_packets;    /* nothing listens at their port */
};
LH_API void lh_sim_world_counts(struct lh_sim_world *world, struct lh_sim_counts *counts);
/* Returns a hash of all arrivals so far; identical runs have equal hashes. */
LH_API uint64_t lh_sim_world_trace(struct lh_sim_world *world);

#ifdef __cplusplus
}
#endif
#endif
