/*
 * netsim_walk.h - walks every path that the routes of a graph allow.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SUPPORT_NETSIM_WALK_H
#define LH_SUPPORT_NETSIM_WALK_H

#include "netsim/engine/network.h"

struct walk {
    const struct netsim_graph *graph;
    uint32_t *port_first; /* of node n: ports port_first[n] … */
    uint32_t *peer;       /* of each port: the node behind it */
    uint8_t *length;      /* of each node, to `destination`; 0: not known, 255: on the way there */
    uint32_t destination;
};

void walk_init(struct walk *walk, const struct netsim_graph *graph);
void walk_free(struct walk *walk);
/* From now on all paths lead to this host. */
void walk_to(struct walk *walk, uint32_t destination);
/* Links from this node to the destination. Asserts that each alternative of each switch on the way gives
 * the same number, so that there is neither a loop nor a dead end. */
unsigned walk_length(struct walk *walk, uint32_t node);
/* The node behind that port. */
uint32_t walk_peer(const struct walk *walk, uint32_t node, uint32_t port);

#endif
