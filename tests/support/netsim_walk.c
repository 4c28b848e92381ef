/*
 * netsim_walk.c - see netsim_walk.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/netsim_walk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "netsim/engine/network.h"

#define IN_FLIGHT 255

void walk_init(struct walk *walk, const struct netsim_graph *graph)
{
    uint32_t *next = calloc(graph->nodes_count, sizeof *next);
    walk->graph = graph;
    walk->port_first = calloc(graph->nodes_count + 1, sizeof *walk->port_first);
    walk->peer = calloc(2 * (size_t)graph->cables_count, sizeof *walk->peer);
    walk->length = calloc(graph->nodes_count, 1);
    assert(next != NULL && walk->port_first != NULL && walk->peer != NULL && walk->length != NULL);
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        next[node] = walk->port_first[node];
        walk->port_first[node + 1] = walk->port_first[node] + graph->nodes[node].ports;
    }
    assert(walk->port_first[graph->nodes_count] == 2 * graph->cables_count);
    for (uint32_t i = 0; i < graph->cables_count; i++) {
        const uint32_t *ends = graph->cables[i].ends;
        walk->peer[next[ends[0]]++] = ends[1];
        walk->peer[next[ends[1]]++] = ends[0];
    }
    for (uint32_t node = 0; node < graph->nodes_count; node++)
        assert(next[node] == walk->port_first[node + 1]);
    free(next);
}

void walk_free(struct walk *walk)
{
    free(walk->port_first);
    free(walk->peer);
    free(walk->length);
}

void walk_to(struct walk *walk, uint32_t destination)
{
    walk->destination = destination;
    memset(walk->length, 0, walk->graph->nodes_count);
}

uint32_t walk_peer(const struct walk *walk, uint32_t node, uint32_t port)
{
    assert(port < walk->graph->nodes[node].ports);
    return walk->peer[walk->port_first[node] + port];
}

unsigned walk_length(struct walk *walk, uint32_t node)
{
    const struct netsim_graph *graph = walk->graph;
    if (node == walk->destination)
        return 0;
    assert(walk->length[node] != IN_FLIGHT);
    if (walk->length[node] != 0)
        return walk->length[node];
    walk->length[node] = IN_FLIGHT;
    unsigned length = 0;
    if (node < graph->hosts) {
        length = walk_length(walk, walk_peer(walk, node, 0)) + 1;
    } else {
        const struct netsim_route *route = &graph->routes[node - graph->hosts];
        uint32_t count = netsim_route_port_count(route, walk->destination);
        assert(count > 0);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t port = netsim_route_port_at(route, walk->destination, i);
            unsigned found = walk_length(walk, walk_peer(walk, node, port)) + 1;
            assert(length == 0 || length == found);
            length = found;
        }
    }
    assert(length < IN_FLIGHT);
    walk->length[node] = (uint8_t)length;
    return length;
}
