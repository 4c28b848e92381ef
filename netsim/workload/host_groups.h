/*
 * host_groups.h - hosts by group, for who talks to whom (workload.matrix): one group of all, the two halves
 * or first site and rest, or the sites.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_HOST_GROUPS_H
#define LH_NETSIM_WORKLOAD_HOST_GROUPS_H

#include "netsim/base/config.h"
#include "netsim/engine/graph.h"

#define NETSIM_GROUPS_MAX 256u /* a site is 8 bits */

struct netsim_host_groups {
    enum netsim_matrix matrix;
    const struct netsim_graph *graph;
    uint32_t *order;                       /* hosts by group, for all of them; the caller's */
    uint32_t first[NETSIM_GROUPS_MAX + 1]; /* of each group, in order; the last: how many hosts there are */
    uint32_t senders; /* number of hosts, from the first of order on: all, or with across the first group */
};

/* Sets all but the order. -LH_EINVAL with workload.matrix named: a group without enough hosts. */
int netsim_host_groups_count(struct netsim_host_groups *groups, enum netsim_matrix matrix,
                             const struct netsim_graph *graph);
/* After that, with memory for it: sets the order. */
void netsim_host_groups_sort(struct netsim_host_groups *groups);

uint32_t netsim_host_group(const struct netsim_host_groups *groups, uint32_t host);

#endif
