/*
 * small_network.h - for tests of single parts of the engine: a dumbbell of two hosts on each side, with no
 * packet in it.
 *
 * Links 0 to 3 are those of the hosts; hosts 0 and 1 are at switch 4, hosts 2 and 3 at switch 5.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SUPPORT_SMALL_NETWORK_H
#define SUPPORT_SMALL_NETWORK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/netsim_world.h"

#define LEFT  4u /* switches */
#define RIGHT 5u
#define FULL  4174u /* bytes of a full packet */

static struct netsim_world world;

static inline struct netsim_network *open_network(const struct netsim_config *config)
{
    const struct netsim_flow_request none[1] = {{0}};
    netsim_world_open(&world, config, none, 0, 1);
    return &world.net.network;
}

static inline struct netsim_config small_config(void)
{
    struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
    config.topology.hosts = 2;
    return config;
}

/* A packet of host 0 for host 2, of that priority. */
static inline uint32_t new_packet(struct netsim_network *network, uint8_t priority)
{
    uint32_t packet = netsim_packet_new(network);
    network->pool.packets[packet] = (struct netsim_packet){.next = NETSIM_NO_PACKET,
                                                           .flow = 7,
                                                           .source = 0,
                                                           .destination = 2,
                                                           .wire_bytes = FULL,
                                                           .kind = LH_NETSIM_DATA,
                                                           .priority = priority};
    return packet;
}

#endif
