/*
 * route.h - which ports of a switch lead to a host: the plain reading of struct netsim_route.
 *
 * For whoever walks paths. The switches of the engine read the same route with precomputed reciprocals.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_ENGINE_ROUTE_H
#define LH_NETSIM_ENGINE_ROUTE_H

#include "netsim/engine/graph.h"

/* How many ports of equal cost lead to that host; 0: none does. */
uint32_t netsim_route_port_count(const struct netsim_route *route, uint32_t host);
/* The i-th of them. i is below the count. */
uint32_t netsim_route_port_at(const struct netsim_route *route, uint32_t host, uint32_t i);

#endif
