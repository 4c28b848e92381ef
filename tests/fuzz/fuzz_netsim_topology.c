/*
 * fuzz_netsim_topology.c - the text of a topology; and every route of one that is taken leads to its host.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/topology/topology.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/error.h>

#include "netsim/engine/network.h"

/* A text of few bytes may ask for tables that grow with its square: no more than this. */
#define MEMORY_MAX ((size_t)256 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t peer_behind(const struct netsim_graph *graph, uint32_t node, uint32_t port)
{
    for (uint32_t end = 0; end < 2 * graph->cables_count; end++) {
        if (graph->cables[end / 2].ends[end % 2] == node && port-- == 0)
            return graph->cables[end / 2].ends[1 - end % 2];
    }
    abort();
}

/* One of the paths between two hosts: it arrives, and passes no switch twice. */
static void walk(const struct netsim_graph *graph, uint32_t from, uint32_t to)
{
    uint32_t node = peer_behind(graph, from, 0);
    for (uint32_t hops = 0; node != to; hops++) {
        assert(node >= graph->hosts && hops < graph->nodes_count);
        const struct netsim_route *route = &graph->routes[node - graph->hosts];
        uint32_t count = netsim_route_port_count(route, to);
        assert(count > 0);
        node = peer_behind(graph, node, netsim_route_port_at(route, to, hops % count));
    }
}

static void check_graph(const struct netsim_graph *graph)
{
    assert(graph->hosts >= 2 && graph->sites >= 1 && graph->sites <= 256);
    for (uint32_t i = 0; i < graph->nodes_count; i++) {
        const struct netsim_node *node = &graph->nodes[i];
        assert(node->name[0] != '\0' && memchr(node->name, '\0', sizeof node->name) != NULL);
        assert(node->site < graph->sites && node->tier <= NETSIM_TIER_DCI);
        assert((i < graph->hosts) == (node->tier == NETSIM_TIER_HOST));
        assert(i >= graph->hosts || node->ports == 1);
    }
    for (uint32_t i = 0; i < graph->cables_count; i++) {
        const struct netsim_cable *cable = &graph->cables[i];
        assert(cable->rate_bps >= NETSIM_RATE_MIN && cable->rate_bps <= NETSIM_RATE_MAX);
        assert(cable->faults == NETSIM_NO_FAULTS || cable->faults < graph->faults_count);
    }
    for (uint32_t to = 0; to < graph->hosts && to < 8; to++) {
        for (uint32_t from = 0; from < graph->hosts && from < 8; from++) {
            if (from != to)
                walk(graph, from, to);
        }
    }
}

static void check_rc(int rc)
{
    assert(rc == -LH_EINVAL || rc == -LH_ERANGE);
    assert(lh_last_error()[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct netsim_topology_config config = {
        .kind = NETSIM_TOPOLOGY_FILE,
        .rate_bps = 100000000000,
        .core_delay_ps = NETSIM_NEVER,
        .file = {.data = size > 0 ? (const char *)data : "", .bytes = size}};
    struct netsim_arena counting = {0};
    struct netsim_graph graph;
    int rc = netsim_topology_build(&config, &counting, &graph);
    if (rc != 0) {
        check_rc(rc);
        return 0;
    }
    if (counting.used_bytes > MEMORY_MAX)
        return 0;
    struct netsim_arena arena = {.base = aligned_alloc(64, counting.used_bytes),
                                 .capacity_bytes = counting.used_bytes};
    assert(arena.base != NULL);
    memset(arena.base, 0, counting.used_bytes);
    rc = netsim_topology_build(&config, &arena, &graph);
    if (rc == 0)
        check_graph(&graph);
    else
        check_rc(rc);
    free(arena.base);
    return 0;
}
