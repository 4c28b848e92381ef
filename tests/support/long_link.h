/*
 * long_link.h - four hosts, a long link, four hosts: a world for tests of flow control between sites.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SUPPORT_LONG_LINK_H
#define SUPPORT_LONG_LINK_H

#include "support/netsim_world.h"

#define FRAME    4174u
#define PAYLOAD  4096u
#define DELAY_US 100u
#define BDP      10000000u /* 400 Gbit/s, 100 us one way */
#define HOSTS    4u        /* on either side; the second half receives */
/* A packet that crosses, one that waits, the pause frame. */
#define FEW (4 * FRAME + 64)

struct way {
    const char *name;
    enum netsim_long_control control;
    bool by_arrivals;
    bool relay_threshold;
    uint64_t needs_bytes; /* of buffer at the end of the long link */
    uint32_t guard_slots;
};

enum { WAY_PFC, WAY_BIFROST, WAY_GUARDED, WAY_PRINTED, WAY_CBFC, WAY_SWING, WAY_SWING_THRESHOLD, WAYS };
extern const struct way ways[WAYS];

extern struct netsim_world world;

/* That way on the long link, PFC elsewhere; no timeout ever. */
struct netsim_config way_config(const struct way *way);
/* Opens the world: a flow of so many bytes from each sender, to so many receivers. */
void open_flows(const struct netsim_config *config, uint64_t bytes, uint32_t receivers);
/* The link by which the long way comes to where the deep buffer is. */
const struct netsim_port *long_link(void);
/* Nothing leaves for so many receivers, or goes on. */
void stop_receivers(uint32_t receivers, bool stop);
/* The worst case of figure 5: all at the full rate, then nothing leaves for a while, then all does again;
 * twice. Opens the world and runs until its end. */
void stop_and_go(const struct netsim_config *config, uint64_t bytes);

#endif
