/*
 * kind.c - see kind.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/topology/kind.h"

#include "base/error.h"

int netsim_topology_check_count(const char *key, uint32_t value, const char *what, uint32_t max)
{
    if (value >= 1 && value <= max)
        return 0;
    return lh_fail(LH_ERANGE, "%s %u: %s, 1 to %u", key, value, what, max);
}

int netsim_topology_check_shape(const char *key, const struct netsim_shape *shape)
{
    uint64_t nodes = shape->hosts + shape->switches;
    if (shape->hosts < 2)
        return lh_fail(LH_ERANGE, "%s: %llu hosts, at least two are needed (add hosts)", key,
                       (unsigned long long)shape->hosts);
    if (shape->hosts > NETSIM_HOSTS_MAX)
        return lh_fail(LH_ERANGE, "%s: %llu hosts, at most %u (make it smaller)", key,
                       (unsigned long long)shape->hosts, NETSIM_HOSTS_MAX);
    if (nodes > NETSIM_NODES_MAX)
        return lh_fail(LH_ERANGE, "%s: %llu hosts and switches, at most %u (make it smaller)", key,
                       (unsigned long long)nodes, NETSIM_NODES_MAX);
    if (shape->cables > NETSIM_CABLES_MAX)
        return lh_fail(LH_ERANGE, "%s: %llu cables, at most %u (make it smaller)", key,
                       (unsigned long long)shape->cables, NETSIM_CABLES_MAX);
    return 0;
}
