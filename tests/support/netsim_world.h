/*
 * netsim_world.h - a simulated network for tests: built from numbers, run in pieces, checked from outside.
 *
 * Everything follows from the configuration, the flows and the seed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SUPPORT_NETSIM_WORLD_H
#define SUPPORT_NETSIM_WORLD_H

#include "netsim/run/simulation_run.h"

/* What a watcher of all links counted. Index: enum lh_netsim_kind. */
struct netsim_seen {
    uint64_t hash;        /* of every packet, in order */
    uint64_t packets;     /* over any link, pauses and resumes too */
    uint64_t to_hosts[6]; /* over the links that end at a host */
    uint64_t from_hosts[6];
};

struct netsim_world {
    struct netsim_config config;
    struct netsim_graph graph;
    struct netsim_flow_list list;
    struct netsim net;
    struct netsim_seen seen;
    void *memory[3];
};

/* 100 Gbit/s, 1 us; 4 KiB packets of 4,174 bytes on the wire, acknowledgements of 64; no window; switches of
 * 16 MiB that drop only when that is full; one round of a permutation of 1 MiB. */
struct netsim_config netsim_world_config(enum netsim_topology_kind kind);

/* The flows are copied. NULL: the workload of the configuration draws them. The configuration must be
 * right. */
void netsim_world_open(struct netsim_world *world, const struct netsim_config *config,
                       const struct netsim_flow_request *flows, uint32_t count, uint64_t seed);
void netsim_world_close(struct netsim_world *world);

/* The port sends what it has, from now on. */
void netsim_world_kick(struct netsim_world *world, uint32_t port);
/* Pauses a priority of a port, or resumes it, as flow control does. */
void netsim_world_pause(struct netsim_world *world, uint32_t port, uint8_t priority, bool pause);
/* Sets the timers that flow control asks for, which asks for nothing else. */
void netsim_world_set_timers(struct netsim_world *world);

/* Has each packet on each link counted and hashed from now on. */
void netsim_world_watch(struct netsim_world *world);
/* Runs until nothing is left to happen; asserts that it gets there. */
void netsim_world_finish(struct netsim_world *world);
/* The same in steps of step_ps, with netsim_world_check() after each. */
void netsim_world_finish_in_steps(struct netsim_world *world, netsim_time step_ps);

/* Asserts what holds at any moment: queues, buffers and the bytes held for flow control agree with each other
 * and with their limits. */
void netsim_world_check(const struct netsim_world *world);
/* Asserts what holds at the end: everything is empty, and what was sent arrived or was counted on the way. A
 * watched world is also asked what arrived at the hosts. */
void netsim_world_check_end(const struct netsim_world *world);
/* Asserts that each flow has ended. */
void netsim_world_check_done(const struct netsim_world *world);

/* The link from one node to the next; asserts that there is one. */
uint32_t netsim_world_link(const struct netsim_world *world, uint32_t from, uint32_t to);

#endif
