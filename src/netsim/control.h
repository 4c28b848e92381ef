/*
 * control.h - flow control in the simulated network: which link is under which, and what it needs.
 *
 * A long link is one between switches of different sites. It, and the other ports of the switches at its
 * ends, may be under other rules than the rest. All rules are about the data's priority; what else is
 * sent is dropped when there is no room.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_CONTROL_H
#define LH_NETSIM_CONTROL_H

#include <longhaul/flowcontrol.h>

#include "netsim/config.h"
#include "netsim/graph.h"

/* How the far end of a link keeps its near end from overrunning it. */
enum netsim_control {
    NETSIM_CONTROL_NONE,
    NETSIM_CONTROL_PFC,
    NETSIM_CONTROL_CREDITS,
    NETSIM_CONTROL_BIFROST,
    NETSIM_CONTROL_RELAY, /* the far end is a relay of SWING */
};

struct netsim_control_rule {
    enum netsim_control control;
    uint64_t own_bytes;    /* of buffer, for each priority of this link alone; 0: it shares the switch's */
    uint64_t credit_bytes; /* credits: of which so much is given out */
    struct lh_pfc_thresholds pfc;     /* PFC, and a relay that does not forward */
    struct lh_bifrost_config bifrost; /* Bifrost */
    bool by_arrivals;                 /* Bifrost: F as printed, see lh_bifrost_init() */
    bool forward;                     /* a relay: see struct lh_swing */
    bool wide;                        /* credits: without the limit of 12 bits */
    netsim_time refresh_ps;           /* PFC, a relay, credits: see struct lh_flow_refresh; 0: never */
    uint64_t step_bytes;              /* credits: told when so much is free that was not told */
};

/* Bytes of a full packet on the wire. */
static inline uint32_t netsim_frame_bytes(const struct netsim_config *config)
{
    return config->transport.payload_bytes + config->transport.header_bytes;
}

/* control_rules.c: the rule of what comes over directed link 2 * cable + direction (0: from end a to end
 * b). The graph is filled in. */
bool netsim_cable_is_long(const struct netsim_graph *graph, const struct netsim_cable *cable);
/* Sets `border` of all nodes; the last step of making a graph. */
void netsim_mark_borders(struct netsim_graph *graph);
/* 0; -LH_EINVAL, -LH_ERANGE: it cannot work, with key and remedy. */
int netsim_control_rule(const struct netsim_config *config, const struct netsim_graph *graph,
                        uint32_t cable, unsigned direction, struct netsim_control_rule *rule);
/* -LH_EINVAL: with credits told in steps of so much, a link with such a buffer would stop for ever. */
int netsim_credit_step_check(const char *key, uint64_t step_bytes, uint64_t buffer_bytes, bool wide,
                             uint32_t packet_bytes);
/* All links of the graph. */
int netsim_control_check(const struct netsim_config *config, const struct netsim_graph *graph);

#endif
