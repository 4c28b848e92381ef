/*
 * arrivals.h - one Poisson process: flows that begin at hosts of one group, for hosts of another.
 *
 * The hosts that send are independent Poisson processes. Their sum is one too, and each of its arrivals
 * belongs to a host with the chance of that host's share of the sum: so one process is drawn, in the order
 * of time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_WORKLOAD_ARRIVALS_H
#define LH_NETSIM_WORKLOAD_ARRIVALS_H

#include "base/prng.h"
#include "netsim/workload/host_groups.h"

struct netsim_arrivals {
    const struct netsim_host_groups *groups;
    uint32_t sender_first; /* places in the order of the groups */
    uint32_t senders;
    uint32_t receiver_first;
    uint32_t receivers; /* 0: all of the sender's own group */
    const uint64_t
        *base_bps;         /* of each host: its share of the flows; not looked at until hosts are drawn */
    uint64_t base_max_bps; /* of the senders */
    double flows_per_ps;
    double at_ps; /* the next one */
    struct lh_prng gaps;
    struct lh_prng sources;
    struct lh_prng destinations;
    struct lh_prng sizes;
};

/* From time 0 on: everything above at_ps is set. */
void netsim_arrivals_begin(struct netsim_arrivals *arrivals, const struct lh_prng *prng);
/* On to the flow after this one. */
void netsim_arrivals_next(struct netsim_arrivals *arrivals);
/* Who sends it to whom; once for each flow. */
void netsim_arrivals_hosts(struct netsim_arrivals *arrivals, uint32_t *source, uint32_t *destination);

#endif
