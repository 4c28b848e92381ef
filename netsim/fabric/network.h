/*
 * network.h - a switched network between the hosts: what a link lets through crosses it before it arrives.
 *
 * With the world's lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FABRIC_NETWORK_H
#define LH_NETSIM_FABRIC_NETWORK_H

#include "netsim/fabric/world.h"

/* When something happens in the network, in the world's time; LH_TIME_NEVER when there is no network or
 * nothing is in it. */
lh_time sim_network_next_ns(const struct sim_world *world);
/* -LH_ENOMEM: its pool was used up, by flows of its own or by packets of the world. */
int sim_network_check(const struct sim_world *world);
/* A packet enters at its source's port, at a moment that is not after anything due in there. False: the
 * network's pool is used up; the caller keeps the packet. */
bool sim_network_enter(struct sim_world *world, struct sim_packet *packet, lh_time at_ns);
/* Lets it happen up to at_ns. -LH_ENOMEM: the pool is used up, for good. */
int sim_network_run(struct sim_world *world, lh_time at_ns);
/* The next packet that has left it, or NULL. What was dropped inside is counted and freed. */
struct sim_packet *sim_network_take(struct sim_world *world);

#endif
