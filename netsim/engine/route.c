/*
 * route.c - see route.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/engine/route.h"

#include <assert.h>
#include <stdbool.h>

/* Hosts before below_first wrap around and are far above below_count. */
static bool is_below(const struct netsim_route *route, uint32_t host)
{
    return host - route->below_first < route->below_count;
}

uint32_t netsim_route_port_count(const struct netsim_route *route, uint32_t host)
{
    if (route->table_first != NULL)
        return route->table_first[host + 1] - route->table_first[host];
    return is_below(route, host) ? route->below_width : route->up_width;
}

uint32_t netsim_route_port_at(const struct netsim_route *route, uint32_t host, uint32_t i)
{
    assert(i < netsim_route_port_count(route, host));
    if (route->table_first != NULL)
        return route->table_choices[route->table_first[host] + i];
    if (!is_below(route, host))
        return route->up_port + (host > route->below_first ? route->after_shift : 0) + i;
    uint32_t group = (host - route->below_first) / route->hosts_per_group;
    return route->below_port + group * route->below_width + i;
}
