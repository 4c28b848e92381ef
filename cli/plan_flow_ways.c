/*
 * plan_flow_ways.c - each way of flow control on a link: what it needs, and what happens with less.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan_flow.h"

#include <longhaul/units.h>

#include <math.h>
#include <stdio.h>

/* Nothing is known of a buffer there is. */
static struct cli_flow_way way_of(const char *name, uint64_t buffer, uint64_t xoff, uint64_t headroom)
{
    return (struct cli_flow_way){name, buffer, xoff, headroom, 0, NAN, NAN, NAN, ""};
}

struct lh_bifrost_config cli_flow_bifrost(const struct cli_flow_order *order,
                                          const struct lh_flow_needs *needs)
{
    const struct lh_flow_link *link = &order->link;
    struct lh_bifrost_config config = {
        .rate_bps = link->rate_bps,
        .delay_ns = link->delay_ns,
        .slot_ns = link->slot_ns,
        .delta_bytes = needs->bdp_bytes,
        .buffer_bytes = needs->bifrost_h_bytes,
        .leak_slots = link->leak_slots,
        .mtu_bytes = link->mtu_bytes,
        .guard_slots = order->guard_slots,
    };
    config.headroom_bytes = needs->bifrost_headroom_bytes + lh_bifrost_guard_headroom(&config);
    /* While the delay grows pauses come further apart than slots; a guard of one slot ends that. */
    if (order->guard_slots != 1)
        config.headroom_bytes += (uint64_t)((double)order->drift_ns * (double)link->rate_bps / 8e9);
    return config;
}

static double short_of(uint64_t needed, uint64_t given)
{
    return needed > given ? (double)(needed - given) : 0;
}

static double part(uint64_t given, uint64_t needed)
{
    return fmin(1, (double)given / (double)needed);
}

/* PFC loses what the headroom lacks when a stop lasts, and idles for what the threshold lacks when it
 * ends. Bifrost (with F by grants) and credits grant only what there is room for, and so carry a part of
 * the rate. A relay that passes pauses on has no limit but its buffer. */
static void with_buffer(struct cli_flow_way ways[CLI_FLOW_WAYS], const struct lh_flow_needs *needs,
                        const struct cli_flow_order *order)
{
    uint64_t buffer = order->buffer_bytes;
    uint64_t xoff = buffer > needs->pfc_headroom_bytes ? buffer - needs->pfc_headroom_bytes : 0;
    uint64_t h = buffer > ways[1].headroom_bytes ? buffer - ways[1].headroom_bytes : 0;
    for (unsigned i = 0; i < CLI_FLOW_WAYS; i++)
        ways[i].lost_bytes = ways[i].idle_s = 0, ways[i].rate_share = 1;
    ways[0].lost_bytes = short_of(needs->pfc_headroom_bytes, buffer);
    ways[0].idle_s = 8 * short_of(needs->pfc_xoff_bytes, xoff) / (double)order->link.rate_bps;
    ways[1].rate_share = part(h, needs->bifrost_h_bytes);
    ways[2].rate_share = part(buffer, needs->cbfc_buffer_bytes);
    ways[3].lost_bytes = short_of(needs->swing_relay_bytes, buffer);
}

/* A pause says 65,535 quanta at most. Where it is sent anew before it ends, one that is lost lets through
 * what the link carries in that time, whatever its rate. A guard has its headroom. */
static void lost_signals(const struct cli_flow_order *order, const struct lh_flow_needs *needs,
                         struct cli_flow_way ways[CLI_FLOW_WAYS])
{
    uint64_t slot_bytes = (needs->bifrost_h_bytes - needs->bdp_bytes - LH_PFC_QUANTUM_BYTES) / 2;
    ways[0].signal_bytes = ways[3].signal_bytes = (uint64_t)LH_PFC_QUANTA_MAX * LH_PFC_QUANTUM_BYTES;
    ways[1].signal_bytes = order->guard_slots != 0 ? 0 : slot_bytes;
}

static void tell_risks(const struct cli_flow_order *order, const struct lh_flow_needs *needs,
                       struct cli_flow_way ways[CLI_FLOW_WAYS])
{
    char time[LH_FORMAT_MAX], reach[LH_FORMAT_MAX];
    lh_format_time(2e-9 * (double)order->link.delay_ns, time, sizeof time);
    snprintf(ways[0].risk, sizeof ways[0].risk,
             "less headroom loses packets; a lower xoff leaves the way out idle for up to %s after a pause",
             time);
    snprintf(
        ways[1].risk, sizeof ways[1].risk,
        order->guard_slots != 0
            ? "lost frames overflow nothing, and stop the link for their slots; frames take %.3f %% of "
              "the way back"
            : "lost pauses let slots through, late ones packets, and k have room; pauses take up to "
              "%.3f %% of the way back",
        100 * needs->bifrost_pause_share);
    lh_format_time(1e-9 * (double)needs->cbfc_reach_ns, reach, sizeof reach);
    snprintf(ways[2].risk, sizeof ways[2].risk,
             needs->cbfc_fits_12_bits
                 ? "less buffer is less rate; the 12 bits of InfiniBand reach %s one way, far enough"
                 : "less buffer is less rate; the 12 bits of InfiniBand reach %s one way, not this far",
             reach);
    snprintf(ways[3].risk, sizeof ways[3].risk,
             "a relay at each end, which has the buffer; our model of it, with pauses passed on at once");
}

void cli_flow_ways(const struct cli_flow_order *order, const struct lh_flow_needs *needs,
                   struct cli_flow_way ways[CLI_FLOW_WAYS])
{
    ways[0] = way_of("PFC", needs->pfc_buffer_bytes, needs->pfc_xoff_bytes, needs->pfc_headroom_bytes);
    const struct lh_bifrost_config bifrost = cli_flow_bifrost(order, needs);
    ways[1] = way_of("Bifrost", bifrost.buffer_bytes + bifrost.headroom_bytes, 0, bifrost.headroom_bytes);
    ways[2] = way_of("credits", needs->cbfc_buffer_bytes, 0, 0);
    ways[3] = way_of("SWING", needs->swing_relay_bytes, 0, needs->swing_relay_bytes);
    if (order->buffer_bytes != 0)
        with_buffer(ways, needs, order);
    lost_signals(order, needs, ways);
    tell_risks(order, needs, ways);
}
