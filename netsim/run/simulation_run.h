/*
 * simulation_run.h - the whole of one simulation: the network, its flow control and the transport of its
 * hosts, which do not know each other, and the loop that passes events to them and carries out what they
 * ask for.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_RUN_SIMULATION_RUN_H
#define LH_NETSIM_RUN_SIMULATION_RUN_H

#include "netsim/engine/disturbance.h"
#include "netsim/engine/network.h"
#include "netsim/flowcontrol/flow_machines.h"
#include "netsim/transport/netsim_flows.h"

struct netsim {
    struct netsim_network network;
    struct netsim_flow_control control;
    struct netsim_transport transport;
    struct netsim_disturbance disturbance;
    struct netsim_deadlock deadlock;
    bool runs_on; /* raw packets may come at any time: the end of all flows is not the end of the run */
};

/* Lays the simulation out in the arena, its packets last: they alone need not be zeroed. Graph and flows stay
 * as they are as long as it is used, and the simulation stays where it is. */
void netsim_setup(struct netsim *net, const struct netsim_config *config, const struct netsim_graph *graph,
                  const struct netsim_flow_list *flows, const struct lh_prng *prng,
                  struct netsim_arena *arena);
/* See lh_netsim_run(): 1, 0 or -LH_ENOMEM. */
int netsim_run(struct netsim *net, netsim_time until_ps, uint64_t events_max);

/* Starts a flow of the simulator's own transports, and has its host send. */
void netsim_flow_start(struct netsim *net, uint32_t flow);

/* No packet was left for what had to be sent: -LH_ENOMEM, with the message. */
int netsim_used_up(const struct netsim *net);

/* The clock moves on to at_ps, at which moment nothing is due: so raw packets can be sent then. */
void netsim_settle(struct netsim *net, netsim_time at_ps);
/* Queues a packet at its source's port. It ends exactly once (netsim_raw_take()): links that duplicate spare
 * raw packets. False: see netsim_raw_new(). */
bool netsim_raw_send(struct netsim *net, const struct netsim_raw *raw, uint32_t entropy, uint8_t priority);
/* See netsim_raw_next(). */
static inline bool netsim_raw_take(struct netsim *net, struct netsim_raw *raw)
{
    return netsim_raw_next(&net->network, raw);
}

#endif
