/*
 * flow_list.h - what a workload asks for: who sends how much to whom, and from when on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_BASE_FLOW_LIST_H
#define LH_NETSIM_BASE_FLOW_LIST_H

#include <stdbool.h>

#include "netsim/base/dependencies.h"

#define NETSIM_FLOWS_MAX      16777216u
#define NETSIM_FLOW_BYTES_MAX ((uint64_t)1 << 44) /* 16 TiB of payload; and at most 2^31 packets */

struct netsim_flow_request {
    uint64_t bytes; /* of payload; at least 1 */
    netsim_time start_ps;
    uint32_t source; /* hosts; never the same */
    uint32_t destination;
};

/* Flows that wait for others, then those that start by time, in its order (equal starts in the order of
 * creation). */
struct netsim_flow_list {
    struct netsim_flow_request *flows;
    uint32_t count;
    uint32_t dependents;   /* the first ones */
    uint32_t of_operation; /* flows of each operation, one after the other; 0: there are none */
    bool in_order;         /* those of a host leave in the order of their numbers, else round robin */
    struct netsim_dependencies dependencies;
};

bool netsim_flow_list_is_sorted(const struct netsim_flow_list *list);
/* Puts the list in its order. Equal starts stay as they are. `scratch` holds `count` flows. */
void netsim_flow_list_sort(struct netsim_flow_list *list, struct netsim_flow_request *scratch);

#endif
