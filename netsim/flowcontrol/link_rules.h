/*
 * link_rules.h - rules of each link's flow control by the configuration, and its set-up.
 *
 * A long link is one between switches of different sites. It, and the other ports of the switches at its
 * ends, may be under other rules than the rest. All rules are about the data's priority; what else is
 * sent is dropped when there is no room.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_FLOWCONTROL_LINK_RULES_H
#define LH_NETSIM_FLOWCONTROL_LINK_RULES_H

#include <assert.h>

#include <longhaul/flowcontrol.h>
#include <longhaul/types.h>

#include "netsim/base/netsim_config.h"
#include "netsim/engine/netsim_port.h"
#include "netsim/engine/network.h"
#include "netsim/flowcontrol/flow_machines.h"

struct netsim_control_rule {
    enum netsim_control control;
    uint64_t own_bytes;    /* of buffer, for each priority of this link alone; 0: it shares the switch's */
    uint64_t credit_bytes; /* credits: given out of it */
    struct lh_pfc_thresholds pfc;     /* PFC, and a relay that does not forward */
    struct lh_bifrost_config bifrost; /* Bifrost */
    bool by_arrivals;                 /* Bifrost: F as printed, see lh_bifrost_init() */
    bool forward;                     /* a relay: see struct lh_swing */
    bool wide;                        /* credits: without the limit of 12 bits */
    netsim_time refresh_ps;           /* PFC, a relay, credits: see struct lh_flow_refresh; 0: never */
    uint64_t step_bytes;              /* credits: announced when this much is newly free */
};

/* Bytes of a full packet on the wire. */
static inline uint32_t netsim_frame_bytes(const struct netsim_config *config)
{
    return config->transport.payload_bytes + config->transport.header_bytes;
}

/* The rule of what comes over directed link 2 * cable + direction (0: from end a to end b). The graph is
 * complete. 0; -LH_EINVAL, -LH_ERANGE: it cannot work, with key and remedy. */
int netsim_control_rule(const struct netsim_config *config, const struct netsim_graph *graph,
                        uint32_t cable, unsigned direction, struct netsim_control_rule *rule);
/* -LH_EINVAL: with credits announced in such steps, a link with such a buffer would deadlock. */
int netsim_credit_step_check(const char *key, uint64_t step_bytes, uint64_t buffer_bytes, bool wide,
                             uint32_t packet_bytes);
/* All links of the graph. */
int netsim_control_check(const struct netsim_config *config, const struct netsim_graph *graph);

/* ---- link setup ------------------------------------------------------------------------------------ */

/* Gives each link its flow control. */

/* The configuration has passed netsim_control_check() with the graph of the network. Takes the state of links
 * from the arena. */
void netsim_flow_control_init(struct netsim_flow_control *control, struct netsim_network *network,
                              const struct netsim_config *config, struct netsim_arena *arena);
/* Numbers the events of flow control from `first` on, and returns the first number behind them. */
uint32_t netsim_flow_control_number_events(struct netsim_flow_control *control, uint32_t first);

#endif
