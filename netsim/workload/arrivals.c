/*
 * arrivals.c - see arrivals.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/arrivals.h"

#include <math.h>

#include "netsim/workload/kind.h"

void netsim_arrivals_begin(struct netsim_arrivals *arrivals, const struct lh_prng *prng)
{
    arrivals->gaps = lh_prng_fork(prng, NETSIM_DRAW_GAPS);
    arrivals->sources = lh_prng_fork(prng, NETSIM_DRAW_SOURCES);
    arrivals->destinations = lh_prng_fork(prng, NETSIM_DRAW_DESTINATIONS);
    arrivals->sizes = lh_prng_fork(prng, NETSIM_DRAW_SIZES);
    arrivals->at_ps = 0;
    netsim_arrivals_next(arrivals);
}

void netsim_arrivals_next(struct netsim_arrivals *arrivals)
{
    arrivals->at_ps -= log1p(-lh_prng_double(&arrivals->gaps)) / arrivals->flows_per_ps;
}

/* A host that sends, as its place in the order: by its share of the sum. Hosts with the fastest cable are
 * taken at once. Others are drawn again with the chance that they lack, so a draw takes as many turns in
 * the mean as the fastest is faster than the mean. */
static uint32_t draw_sender(struct netsim_arrivals *arrivals)
{
    for (;;) {
        uint32_t place =
            arrivals->sender_first + (uint32_t)lh_prng_below(&arrivals->sources, arrivals->senders);
        double base_bps = (double)arrivals->base_bps[arrivals->groups->order[place]];
        if (lh_prng_chance(&arrivals->sources, base_bps / (double)arrivals->base_max_bps))
            return place;
    }
}

/* Any but the sender itself. */
static uint32_t draw_receiver(struct netsim_arrivals *arrivals, uint32_t sender)
{
    const struct netsim_host_groups *groups = arrivals->groups;
    uint32_t first = arrivals->receiver_first;
    uint32_t count = arrivals->receivers;
    if (count == 0) {
        uint32_t group = netsim_host_group(groups, groups->order[sender]);
        first = groups->first[group];
        count = groups->first[group + 1] - first;
    }
    bool among = sender - first < count;
    uint32_t place = first + (uint32_t)lh_prng_below(&arrivals->destinations, count - (among ? 1 : 0));
    return among && place >= sender ? place + 1 : place;
}

void netsim_arrivals_hosts(struct netsim_arrivals *arrivals, uint32_t *source, uint32_t *destination)
{
    uint32_t sender = draw_sender(arrivals);
    *source = arrivals->groups->order[sender];
    *destination = arrivals->groups->order[draw_receiver(arrivals, sender)];
}
