/*
 * flow_ways.c - each way of flow control on a link: what it needs, and what happens with less.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/plan/flow_ways.h"

#include <longhaul/units.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { WAY_PFC, WAY_BIFROST, WAY_CREDITS, WAY_SWING };

/* Nothing is known of a buffer there is. */
static struct cli_flow_way way_of(const char *name, uint64_t buffer, uint64_t least, uint64_t xoff,
                                  uint64_t headroom)
{
    return (struct cli_flow_way){name, buffer, least, xoff, headroom, 0, NAN, NAN, NAN, ""};
}

/* A pause is late by what it waits behind, and its own length: that is a part of what is under way. The
 * headroom is what Bifrost cannot do without. */
struct lh_bifrost_config cli_flow_bifrost(const struct cli_flow_order *order,
                                          const struct lh_flow_needs *needs)
{
    const struct lh_flow_link *link = &order->link;
    uint64_t late = (uint64_t)link->mtu_bytes + LH_PFC_FRAME_BYTES;
    struct lh_bifrost_config config = {
        .rate_bps = link->rate_bps,
        .delay_ns = link->delay_ns,
        .slot_ns = link->slot_ns,
        .delta_bytes = needs->bdp_bytes + late,
        .buffer_bytes = needs->bifrost_h_bytes + late,
        .leak_slots = link->leak_slots,
        .mtu_bytes = link->mtu_bytes,
        .guard_slots = order->guard_slots,
    };
    config.headroom_bytes =
        (uint64_t)link->leak_slots * link->mtu_bytes + lh_bifrost_guard_headroom(&config);
    return config;
}

/* Each slot under way may have let a packet through. While the delay grows pauses come further apart than
 * slots; a guard of one slot ends that. */
static struct cli_flow_way bifrost_way(const struct cli_flow_order *order,
                                       const struct lh_flow_needs *needs)
{
    const struct lh_bifrost_config config = cli_flow_bifrost(order, needs);
    uint64_t least = config.buffer_bytes + config.headroom_bytes;
    uint64_t buffer = needs->bifrost_buffer_bytes + lh_bifrost_guard_headroom(&config);
    if (order->guard_slots != 1)
        buffer += (uint64_t)((double)order->drift_ns * (double)order->link.rate_bps / 8e9);
    return way_of("Bifrost", buffer, least, 0, buffer - needs->bifrost_h_bytes);
}

static double short_of(uint64_t needed, uint64_t given)
{
    return needed > given ? (double)(needed - given) : 0;
}

/* A way out of a constant rate, a share r of the link's, makes PFC stop and go when XOFF is a part x of what
 * still comes after a signal, H. In a cycle, by H at the link's rate: x / (1 - r) until XOFF is crossed, 1
 * until the pause is felt, (1 - r) / r until what came since has left, 1 until the resume is felt; the way
 * out idles for the last part less x / r. The worst is r = 1 + x - sqrt(x). */
static double pfc_rate_share(uint64_t xoff, uint64_t headroom)
{
    double lack = 1 - sqrt(fmin(1, (double)xoff / (double)headroom));
    return 1 / (1 + lack * lack);
}

/* Packets per round trip that the buffer admits, of those that the full rate needs. */
static double credits_rate_share(uint64_t buffer, uint64_t needed, uint32_t mtu_bytes)
{
    uint64_t blocks = lh_cbfc_blocks(mtu_bytes);
    uint64_t packets = buffer / LH_CBFC_BLOCK_BYTES / blocks;
    return fmin(1, (double)(packets * blocks * LH_CBFC_BLOCK_BYTES) / (double)needed);
}

static void pfc_with_buffer(struct cli_flow_way *way, const struct lh_flow_needs *needs,
                            const struct cli_flow_order *order)
{
    uint64_t xoff = order->buffer_bytes - needs->pfc_headroom_bytes;
    way->lost_bytes = 0;
    way->idle_s = 8 * short_of(needs->pfc_xoff_bytes, xoff) / (double)order->link.rate_bps;
    way->rate_share = pfc_rate_share(xoff, needs->pfc_headroom_bytes);
}

/* PFC idles for what the threshold lacks when a stop ends. Bifrost loses what slips past pauses and finds no
 * headroom. Credits grant only what there is room for, and so carry a part of the rate. A relay that passes
 * pauses on has no limit but its buffer. */
static void with_buffer(struct cli_flow_way *way, const struct lh_flow_needs *needs,
                        const struct cli_flow_order *order, unsigned number)
{
    if (order->buffer_bytes < way->least_bytes)
        return;
    way->lost_bytes = short_of(way->buffer_bytes, order->buffer_bytes);
    way->idle_s = 0;
    way->rate_share = 1;
    if (number == WAY_PFC)
        pfc_with_buffer(way, needs, order);
    if (number != WAY_CREDITS)
        return;
    way->lost_bytes = 0;
    way->rate_share =
        credits_rate_share(order->buffer_bytes, needs->cbfc_buffer_bytes, order->link.mtu_bytes);
}

/* A pause has at most 65,535 quanta. Where it is refreshed before it ends, a lost one lets through
 * what the link carries in that time, whatever its rate. A guard has its headroom. */
static void lost_signals(const struct cli_flow_order *order, const struct lh_flow_needs *needs,
                         struct cli_flow_way ways[CLI_FLOW_WAYS])
{
    uint64_t slot_bytes = (needs->bifrost_h_bytes - needs->bdp_bytes - LH_PFC_QUANTUM_BYTES) / 2;
    ways[WAY_PFC].signal_bytes = ways[WAY_SWING].signal_bytes =
        (uint64_t)LH_PFC_QUANTA_MAX * LH_PFC_QUANTUM_BYTES;
    ways[WAY_BIFROST].signal_bytes = order->guard_slots != 0 ? 0 : slot_bytes;
}

static void put_risks(const struct cli_flow_order *order, const struct lh_flow_needs *needs,
                      struct cli_flow_way ways[CLI_FLOW_WAYS])
{
    char time[LH_FORMAT_MAX], reach[LH_FORMAT_MAX];
    lh_format_time(2e-9 * (double)order->link.delay_ns, time, sizeof time);
    snprintf(ways[WAY_PFC].risk, sizeof ways[WAY_PFC].risk,
             "less headroom loses packets; a lower xoff leaves the output idle for up to %s after a pause",
             time);
    snprintf(
        ways[WAY_BIFROST].risk, sizeof ways[WAY_BIFROST].risk,
        order->guard_slots != 0
            ? "lost frames cause no overflow, and stop the link for their slots; frames take %.3f %% of "
              "the reverse direction"
            : "a lost pause lets a slot through, a late one packets (headroom for k); pauses take up to "
              "%.3f %% of the reverse direction",
        100 * needs->bifrost_pause_share);
    lh_format_time(1e-9 * (double)needs->cbfc_reach_ns, reach, sizeof reach);
    snprintf(ways[WAY_CREDITS].risk, sizeof ways[WAY_CREDITS].risk,
             needs->cbfc_fits_12_bits
                 ? "less buffer, lower rate; InfiniBand's 12 bits suffice up to %s one way: this link"
                 : "less buffer, lower rate; InfiniBand's 12 bits suffice up to %s one way: not this link",
             reach);
    snprintf(ways[WAY_SWING].risk, sizeof ways[WAY_SWING].risk,
             "a relay with the buffer at each end; modelled with pauses relayed at once");
}

/* In place of the risk. */
static void put_refusals(const struct cli_flow_order *order, struct cli_flow_way ways[CLI_FLOW_WAYS])
{
    static const char *const causes[CLI_FLOW_WAYS] = {
        [WAY_PFC] = "all of it is headroom",
        [WAY_BIFROST] = "H is a BDP, two slots and a quantum",
        [WAY_CREDITS] = "less than a packet",
        [WAY_SWING] = "less than a packet",
    };
    for (unsigned i = 0; i < CLI_FLOW_WAYS; i++)
        if (order->buffer_bytes != 0 && order->buffer_bytes < ways[i].least_bytes)
            snprintf(ways[i].risk, sizeof ways[i].risk,
                     "%" PRIu64 " bytes: %s (at least %" PRIu64 " bytes)", order->buffer_bytes, causes[i],
                     ways[i].least_bytes);
}

void cli_flow_ways(const struct cli_flow_order *order, const struct lh_flow_needs *needs,
                   struct cli_flow_way ways[CLI_FLOW_WAYS])
{
    uint64_t packet = order->link.mtu_bytes;
    ways[WAY_PFC] = way_of("PFC", needs->pfc_buffer_bytes, needs->pfc_headroom_bytes + 1,
                           needs->pfc_xoff_bytes, needs->pfc_headroom_bytes);
    ways[WAY_BIFROST] = bifrost_way(order, needs);
    ways[WAY_CREDITS] = way_of("credits", needs->cbfc_buffer_bytes, packet + LH_CBFC_BLOCK_BYTES, 0, 0);
    ways[WAY_SWING] = way_of("SWING", needs->swing_relay_bytes, packet, 0, needs->swing_relay_bytes);
    for (unsigned i = 0; order->buffer_bytes != 0 && i < CLI_FLOW_WAYS; i++)
        with_buffer(&ways[i], needs, order, i);
    lost_signals(order, needs, ways);
    put_risks(order, needs, ways);
    put_refusals(order, ways);
}
