/*
 * flow_ways.h - what buffer each way of flow control needs for a link.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_FLOW_WAYS_H
#define LH_CLI_PLAN_FLOW_WAYS_H

#include <longhaul/flowcontrol.h>

/* What was asked. */
struct cli_flow_order {
    struct lh_flow_link link; /* with its longest delay */
    lh_time drift_ns;         /* of that delay may be missing */
    uint32_t guard_slots;     /* Bifrost; 0: none */
    uint64_t buffer_bytes;    /* what there is; 0: not given */
    const char *json;         /* NULL: not asked for */
};

#define CLI_FLOW_WAYS     4
#define CLI_FLOW_RISK_MAX 160

/* One way of flow control on that link. */
struct cli_flow_way {
    const char *name;
    uint64_t buffer_bytes;   /* that it needs */
    uint64_t least_bytes;    /* with less it is not run: the simulator refuses it, too */
    uint64_t xoff_bytes;     /* 0: it has none */
    uint64_t headroom_bytes; /* of the buffer: for what comes after the signal */
    uint64_t signal_bytes;   /* comes at most, beyond the buffer, for a signal that is lost */
    /* With the buffer there is, at worst; NAN: not asked, or less than least_bytes. */
    double lost_bytes;            /* when the way out stops for long */
    double idle_s;                /* of the way out, when it goes on */
    double rate_share;            /* of what the way out takes, at the constant rate that is worst */
    char risk[CLI_FLOW_RISK_MAX]; /* a sentence */
};

/* Bifrost as it is planned. */
struct lh_bifrost_config cli_flow_bifrost(const struct cli_flow_order *order,
                                          const struct lh_flow_needs *needs);
void cli_flow_ways(const struct cli_flow_order *order, const struct lh_flow_needs *needs,
                   struct cli_flow_way ways[CLI_FLOW_WAYS]);

#endif
