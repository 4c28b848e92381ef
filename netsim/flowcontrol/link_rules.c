/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/flowcontrol/link_rules.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include <longhaul/flowcontrol.h>
#include <longhaul/types.h>

#include "base/error.h"
#include "netsim/base/netsim_config.h"
#include "netsim/engine/netsim_port.h"
#include "netsim/engine/network.h"
#include "netsim/flowcontrol/flow_machines.h"

/* ---- link rules ------------------------------------------------------------------------------------ */

/* ---- credits ----------------------------------------------------------------------------------------- */

static uint64_t usable_buffer(uint64_t buffer_bytes, bool wide)
{
    uint64_t maximum = (uint64_t)LH_CBFC_BLOCKS_12BIT * LH_CBFC_BLOCK_BYTES;
    return wide || buffer_bytes < maximum ? buffer_bytes : maximum;
}

/* A sender that waits has used all that was announced but less than a packet. When all of it has left the
 * buffer, what is free and unannounced must be worth announcing. A block always is, where a packet fits. */
static uint64_t longest_step(uint64_t buffer_bytes, bool wide, uint32_t packet_bytes)
{
    uint64_t minimum =
        (uint64_t)packet_bytes + 2 * (uint64_t)LH_CBFC_BLOCK_BYTES; /* both in whole blocks */
    uint64_t buffer = usable_buffer(buffer_bytes, wide);
    return buffer > minimum + LH_CBFC_BLOCK_BYTES ? buffer - minimum : LH_CBFC_BLOCK_BYTES;
}

/* A packet, or as much of one as such a buffer allows. */
static uint64_t credit_step(uint64_t given_bytes, uint64_t buffer_bytes, bool wide, uint32_t packet_bytes)
{
    uint64_t longest = longest_step(buffer_bytes, wide, packet_bytes);
    if (given_bytes != 0)
        return given_bytes;
    return packet_bytes < longest ? packet_bytes : longest;
}

/* ---- inside a site ----------------------------------------------------------------------------------- */

static void inside_rule(const struct netsim_config *config, struct netsim_control_rule *rule)
{
    const struct netsim_switch_config *switches = &config->switches;
    *rule = (struct netsim_control_rule){.wide = true};
    if (switches->pfc) {
        rule->control = NETSIM_CONTROL_PFC;
        rule->refresh_ps = switches->pfc_refresh_ps;
        rule->pfc = (struct lh_pfc_thresholds){switches->pfc_xoff_bytes, switches->pfc_xon_bytes,
                                               switches->pfc_alpha};
    } else if (switches->credit_bytes != 0) {
        rule->control = NETSIM_CONTROL_CREDITS;
        rule->own_bytes = rule->credit_bytes = switches->credit_bytes;
        rule->step_bytes = credit_step(switches->credit_step_bytes, switches->credit_bytes, true,
                                       netsim_frame_bytes(config));
    }
}

/* The other ports of a switch with a long link: nothing is shared there, so their thresholds are fixed. */
static void border_rule(const struct netsim_config *config, struct netsim_control_rule *rule)
{
    inside_rule(config, rule);
    rule->pfc.alpha = 0;
    if (rule->control != NETSIM_CONTROL_CREDITS)
        rule->own_bytes = config->longs.port_bytes;
}

int netsim_credit_step_check(const char *key, uint64_t step_bytes, uint64_t buffer_bytes, bool wide,
                             uint32_t packet_bytes)
{
    uint64_t longest = longest_step(buffer_bytes, wide, packet_bytes);
    if (step_bytes <= longest)
        return 0;
    return lh_fail(LH_EINVAL,
                   "%s %" PRIu64 " bytes: the link would deadlock: of a buffer of %" PRIu64
                   " at most %" PRIu64 " may stay unannounced (lower it)",
                   key, step_bytes, usable_buffer(buffer_bytes, wide), longest);
}

/* ---- the long link ----------------------------------------------------------------------------------- */

static netsim_time long_refresh_ps(const struct netsim_config *config)
{
    const struct netsim_long_config *longs = &config->longs;
    return longs->pfc_refresh_ps == NETSIM_NEVER ? config->switches.pfc_refresh_ps : longs->pfc_refresh_ps;
}

static int pfc_rule(const struct netsim_long_config *longs, const struct lh_flow_needs *needs,
                    struct netsim_control_rule *rule)
{
    uint64_t buffer = longs->buffer_bytes != 0 ? longs->buffer_bytes : needs->pfc_buffer_bytes;
    uint64_t left = buffer > needs->pfc_headroom_bytes ? buffer - needs->pfc_headroom_bytes : 0;
    uint64_t xoff = longs->xoff_bytes != 0 ? longs->xoff_bytes : left;
    rule->control = NETSIM_CONTROL_PFC;
    rule->own_bytes = buffer;
    rule->pfc = (struct lh_pfc_thresholds){xoff, longs->xon_bytes != 0 ? longs->xon_bytes : xoff, 0};
    if (xoff == 0)
        return lh_fail(LH_EINVAL,
                       "long.buffer %" PRIu64 " bytes: PFC needs more than %" PRIu64
                       " of headroom on this link (raise it, or set long.xoff and let it drop)",
                       buffer, needs->pfc_headroom_bytes);
    if (xoff > buffer)
        return lh_fail(LH_EINVAL,
                       "long.xoff (%" PRIu64 ") is above long.buffer (%" PRIu64
                       "): it would drop before it pauses (lower xoff)",
                       xoff, buffer);
    if (rule->pfc.xon_bytes > xoff)
        return lh_fail(LH_EINVAL,
                       "long.xon (%" PRIu64 ") is above long.xoff (%" PRIu64
                       "): it would resume before it pauses (lower xon)",
                       rule->pfc.xon_bytes, xoff);
    return 0;
}

/* While the delay grows, pauses come further apart than slots: each lets through what the link carries in
 * the difference, and what did so in a round trip is not known. A guard of one slot ends that. */
static uint64_t stretched_bytes(const struct netsim_long_config *longs, const struct lh_flow_link *link)
{
    if (longs->drift_ps == 0)
        return 0;
    double slope = 2 * (double)longs->drift_ps / (double)longs->drift_period_ps;
    double trip_s = 2e-9 * (double)link->delay_ns * slope;
    double drift_s = 1e-12 * (double)longs->drift_ps;
    return (uint64_t)((trip_s < drift_s ? trip_s : drift_s) * (double)link->rate_bps / 8) + 1;
}

/* Beyond delta of the fibre: a pause waits behind a packet, and takes its own time. */
static int bifrost_rule(const struct netsim_long_config *longs, const struct lh_flow_link *link,
                        const struct lh_flow_needs *needs, struct netsim_control_rule *rule)
{
    struct lh_bifrost_config *bifrost = &rule->bifrost;
    uint64_t late = (uint64_t)link->mtu_bytes + LH_PFC_FRAME_BYTES;
    uint64_t leaks = (uint64_t)longs->leak_slots * link->mtu_bytes;
    *bifrost = (struct lh_bifrost_config){
        .rate_bps = link->rate_bps,
        .delay_ns = longs->delta_bytes != 0 ? 0 : link->delay_ns,
        .slot_ns = link->slot_ns,
        .delta_bytes = longs->delta_bytes != 0 ? longs->delta_bytes : needs->bdp_bytes + late,
        .leak_slots = longs->leak_slots,
        .mtu_bytes = link->mtu_bytes,
        .guard_slots = longs->guard_slots,
        .even_grants = longs->even_grants,
    };
    bifrost->headroom_bytes = leaks + lh_bifrost_guard_headroom(bifrost);
    uint64_t minimum = bifrost->delta_bytes + needs->bifrost_h_bytes - needs->bdp_bytes;
    uint64_t headroom = bifrost->headroom_bytes;
    /* By grants each slot in flight may have leaked a packet when it arrives: buffer for these, if any. */
    uint64_t slipped = ((uint64_t)lh_bifrost_grants(bifrost) + 2) * link->mtu_bytes;
    slipped += longs->guard_slots != 1 ? stretched_bytes(longs, link) : 0;
    double times = longs->overbook > 1 ? longs->overbook : 1;
    uint64_t given = longs->buffer_bytes > headroom ? longs->buffer_bytes - headroom : 0;
    bifrost->buffer_bytes = given > minimum + slipped ? given - slipped : minimum;
    rule->control = NETSIM_CONTROL_BIFROST;
    rule->by_arrivals = longs->by_arrivals;
    if (link->slot_ns > link->delay_ns)
        return lh_fail(LH_EINVAL,
                       "long.slot %" PRIu64 " ns: exceeds the link's delay of %" PRIu64 " ns (shorten it)",
                       link->slot_ns, link->delay_ns);
    if (longs->buffer_bytes != 0 && given < minimum)
        return lh_fail(LH_EINVAL,
                       "long.buffer %" PRIu64 " bytes%s: Bifrost needs %" PRIu64
                       " on this link (raise it, or shorten long.slot)",
                       (uint64_t)((double)longs->buffer_bytes / times),
                       times > 1 ? " with long.overbook" : "",
                       (uint64_t)ceil((double)(minimum + headroom) / times));
    if (rule->by_arrivals && longs->guard_slots != 0)
        return lh_fail(LH_EINVAL,
                       "long.guard %u and long.incoming is arrived: bytes that the guard stops never "
                       "arrive, and would stay in F (set long.incoming to granted)",
                       longs->guard_slots);
    int rc = lh_bifrost_check(bifrost);
    if (rc != 0)
        return rc;
    rule->own_bytes = longs->buffer_bytes != 0 ? longs->buffer_bytes : minimum + headroom + slipped;
    return 0;
}

static int credits_rule(const struct netsim_long_config *longs, const struct lh_flow_link *link,
                        const struct lh_flow_needs *needs, struct netsim_control_rule *rule)
{
    rule->control = NETSIM_CONTROL_CREDITS;
    rule->own_bytes = longs->buffer_bytes != 0 ? longs->buffer_bytes : needs->cbfc_buffer_bytes;
    rule->credit_bytes = rule->own_bytes;
    rule->wide = !longs->credits_12bit;
    rule->refresh_ps = longs->credit_refresh_ps;
    rule->step_bytes = credit_step(longs->credit_step_bytes, rule->own_bytes, rule->wide, link->mtu_bytes);
    if (rule->own_bytes < link->mtu_bytes + LH_CBFC_BLOCK_BYTES)
        return lh_fail(LH_EINVAL, "long.buffer %" PRIu64 " bytes: not one packet of %u fits (raise it)",
                       longs->overbook > 1 ? (uint64_t)((double)rule->own_bytes / longs->overbook)
                                           : rule->own_bytes,
                       link->mtu_bytes);
    return netsim_credit_step_check("long.credit_step", longs->credit_step_bytes, rule->own_bytes,
                                    rule->wide, link->mtu_bytes);
}

static int relay_rule(const struct netsim_config *config, const struct netsim_graph *graph,
                      const struct netsim_cable *cable, const struct lh_flow_needs *needs,
                      struct netsim_control_rule *rule)
{
    const struct netsim_long_config *longs = &config->longs;
    uint64_t xoff = longs->xoff_bytes != 0 ? longs->xoff_bytes : config->switches.pfc_xoff_bytes;
    rule->control = NETSIM_CONTROL_RELAY;
    rule->forward = !longs->relay_threshold;
    rule->pfc = (struct lh_pfc_thresholds){xoff, longs->xon_bytes != 0 ? longs->xon_bytes : xoff, 0};
    rule->own_bytes = longs->buffer_bytes != 0 ? longs->buffer_bytes : needs->swing_relay_bytes + xoff;
    if (!config->switches.pfc)
        return lh_fail(LH_EINVAL, "long.flow_control is swing, but switch.pfc is off: relays obey the PFC "
                                  "of their switches (set it to on)");
    if (!netsim_is_relay(graph, cable->ends[0]) || !netsim_is_relay(graph, cable->ends[1]))
        return lh_fail(LH_EINVAL,
                       "long.flow_control is swing, and the link from %s to %s has no relay at each end "
                       "(put a switch with tier=relay there)",
                       graph->nodes[cable->ends[0]].name, graph->nodes[cable->ends[1]].name);
    for (unsigned end = 0; end < 2; end++)
        if (graph->nodes[cable->ends[end]].ports != 2)
            return lh_fail(LH_EINVAL,
                           "%s is a relay with %u links: a relay has two, to the long link and to its "
                           "switch (give each long link its own relays)",
                           graph->nodes[cable->ends[end]].name, graph->nodes[cable->ends[end]].ports);
    if (rule->pfc.xon_bytes > xoff)
        return lh_fail(LH_EINVAL, "long.xon (%" PRIu64 ") is above long.xoff (%" PRIu64 ") (lower xon)",
                       rule->pfc.xon_bytes, xoff);
    return 0;
}

/* What is shared out is a multiple of what is there, or what is there a part of what has to be. */
static int overbooked_rule(const struct netsim_long_config *given, const struct lh_flow_link *link,
                           const struct lh_flow_needs *needs, struct netsim_control_rule *rule)
{
    struct netsim_long_config longs = *given;
    double times = given->overbook > 1 ? given->overbook : 1;
    if (times > 1)
        longs.buffer_bytes = (uint64_t)((double)given->buffer_bytes * times);
    int rc = longs.control == NETSIM_LONG_BIFROST ? bifrost_rule(&longs, link, needs, rule)
                                                  : credits_rule(&longs, link, needs, rule);
    if (rc != 0 || times == 1)
        return rc;
    rule->own_bytes =
        given->buffer_bytes != 0 ? given->buffer_bytes : (uint64_t)((double)rule->own_bytes / times);
    if (rule->own_bytes < link->mtu_bytes)
        return lh_fail(LH_EINVAL,
                       "long.overbook %g: it leaves %" PRIu64
                       " bytes of buffer, and not one packet of %u fits in (lower it)",
                       times, rule->own_bytes, link->mtu_bytes);
    return 0;
}

/* What is not given is for the longest that the link ever is. */
static int long_rule(const struct netsim_config *config, const struct netsim_graph *graph,
                     const struct netsim_cable *cable, struct netsim_control_rule *rule)
{
    const struct netsim_long_config *longs = &config->longs;
    struct lh_flow_needs needs;
    const struct lh_flow_link link = {
        .rate_bps = cable->rate_bps,
        .delay_ns = (cable->delay_ps + longs->drift_ps + NETSIM_PS_PER_NS - 1) / NETSIM_PS_PER_NS,
        .slot_ns = longs->slot_ps / NETSIM_PS_PER_NS,
        .leak_slots = longs->leak_slots,
        .mtu_bytes = netsim_frame_bytes(config),
    };
    if (link.delay_ns > LH_NS_PER_S)
        return lh_fail(
            LH_ERANGE,
            "topology.long_delay, or that of a topology file's cable, and long.drift are %" PRIu64
            " ns together: flow control supports at most a second, one way (shorten one)",
            link.delay_ns);
    int rc = lh_flow_needs(&link, &needs);
    *rule = (struct netsim_control_rule){.refresh_ps = long_refresh_ps(config)};
    if (rc != 0)
        return rc;
    switch (longs->control) {
    case NETSIM_LONG_PFC:
        return pfc_rule(longs, &needs, rule);
    case NETSIM_LONG_BIFROST:
    case NETSIM_LONG_CBFC:
        return overbooked_rule(longs, &link, &needs, rule);
    case NETSIM_LONG_SWING:
        return relay_rule(config, graph, cable, &needs, rule);
    default:
        assert(longs->control == NETSIM_LONG_NONE);
        rule->own_bytes = longs->buffer_bytes != 0 ? longs->buffer_bytes : needs.bdp_bytes + link.mtu_bytes;
        return 0;
    }
}

/* ---- any link ---------------------------------------------------------------------------------------- */

/* From a switch to its relay: the relay passes on what stops the long link, and has no other limit. */
static void relay_side_rule(const struct netsim_config *config, struct netsim_control_rule *rule)
{
    *rule = (struct netsim_control_rule){
        .control = NETSIM_CONTROL_RELAY,
        .own_bytes = UINT64_MAX / 2,
        .forward = true,
        .refresh_ps = config->switches.pfc_refresh_ps,
    };
}

int netsim_control_rule(const struct netsim_config *config, const struct netsim_graph *graph,
                        uint32_t number, unsigned direction, struct netsim_control_rule *rule)
{
    assert(number < graph->cables_count && direction < 2);
    const struct netsim_cable *cable = &graph->cables[number];
    uint32_t far = cable->ends[1 - direction];
    inside_rule(config, rule);
    if (config->longs.control == NETSIM_LONG_SAME || !netsim_is_switch(graph, far))
        return 0;
    if (netsim_cable_is_long(graph, cable))
        return long_rule(config, graph, cable, rule);
    if (config->longs.control == NETSIM_LONG_SWING && netsim_is_relay(graph, far))
        relay_side_rule(config, rule);
    else if (graph->nodes[far].border)
        border_rule(config, rule);
    return 0;
}

/* ---- all of them ------------------------------------------------------------------------------------- */

/* The key of the refresh period of this rule. */
static const char *refresh_key(const struct netsim_config *config, const struct netsim_graph *graph,
                               const struct netsim_cable *cable, const struct netsim_control_rule *rule)
{
    bool own = netsim_cable_is_long(graph, cable) && config->longs.control != NETSIM_LONG_SAME &&
               config->longs.pfc_refresh_ps != NETSIM_NEVER;
    if (rule->control == NETSIM_CONTROL_CREDITS)
        return "long.credit_refresh";
    return own ? "long.pfc_refresh" : "switch.pfc_refresh";
}

static bool pauses(const struct netsim_control_rule *rule)
{
    return rule->control == NETSIM_CONTROL_PFC || rule->control == NETSIM_CONTROL_RELAY;
}

static int check_refresh(const struct netsim_config *config, const struct netsim_graph *graph,
                         const struct netsim_cable *cable, const struct netsim_control_rule *rule)
{
    lh_time min_ns = lh_pfc_refresh_min(cable->rate_bps);
    lh_time max_ns = lh_pfc_refresh_max(cable->rate_bps, netsim_frame_bytes(config));
    lh_time period_ns = rule->refresh_ps / NETSIM_PS_PER_NS;
    bool credits = rule->control == NETSIM_CONTROL_CREDITS;
    const char *key = refresh_key(config, graph, cable, rule);
    if (rule->refresh_ps == 0 || (!pauses(rule) && !credits))
        return 0;
    if (period_ns < min_ns)
        return lh_fail(LH_ERANGE,
                       "%s %" PRIu64 " ns: on the cable from %s to %s at least %" PRIu64
                       " ns, or its frames use up the link (lengthen it)",
                       key, period_ns, graph->nodes[cable->ends[0]].name, graph->nodes[cable->ends[1]].name,
                       min_ns);
    if (period_ns > max_ns && !credits)
        return lh_fail(LH_ERANGE,
                       "%s %" PRIu64 " ns: on the cable from %s to %s a pause of %u quanta ends before "
                       "that, and is refreshed every %" PRIu64
                       " ns at most (shorten it, or give long links another long.pfc_refresh)",
                       key, period_ns, graph->nodes[cable->ends[0]].name, graph->nodes[cable->ends[1]].name,
                       LH_PFC_QUANTA_MAX, max_ns);
    return 0;
}

static int check_refreshes(const struct netsim_config *config, const struct netsim_graph *graph)
{
    struct netsim_control_rule rule;
    for (uint32_t c = 0; c < graph->cables_count; c++) {
        for (unsigned direction = 0; direction < 2; direction++) {
            int rc = netsim_control_rule(config, graph, c, direction, &rule);
            if (rc == 0)
                rc = check_refresh(config, graph, &graph->cables[c], &rule);
            if (rc != 0)
                return rc;
        }
    }
    return 0;
}

static int check_long_links(const struct netsim_config *config, const struct netsim_graph *graph)
{
    struct netsim_control_rule rule;
    bool ruled = config->longs.control != NETSIM_LONG_SAME;
    uint32_t found = 0;
    if (!ruled && !netsim_signals_suffer(&config->longs) && config->longs.drift_ps == 0)
        return 0;
    for (uint32_t c = 0; c < graph->cables_count; c++) {
        if (!netsim_cable_is_long(graph, &graph->cables[c]))
            continue;
        int rc = netsim_control_rule(config, graph, c, 0, &rule);
        if (rc != 0)
            return rc;
        found++;
    }
    if (found == 0)
        return lh_fail(LH_EINVAL,
                       "%s is set, and no cable joins switches of different sites (give the switches of a "
                       "topology file site=N, or leave it out)",
                       ruled                           ? "long.flow_control"
                       : config->longs.signal_loss > 0 ? "long.signal_loss"
                       : config->longs.drift_ps > 0    ? "long.drift"
                                                       : "long.mute_for");
    return 0;
}

int netsim_control_check(const struct netsim_config *config, const struct netsim_graph *graph)
{
    int rc = check_long_links(config, graph);
    return rc == 0 ? check_refreshes(config, graph) : rc;
}

/* ---- link setup ------------------------------------------------------------------------------------ */

/* Links that have a state machine of their own. */
static bool has_state(const struct netsim_control_rule *rule)
{
    return rule->control == NETSIM_CONTROL_BIFROST || rule->control == NETSIM_CONTROL_RELAY;
}

static void state_setup(struct netsim_flow_control *control, const struct netsim_control_rule *rule,
                        uint32_t port, struct netsim_arena *arena)
{
    uint32_t *grants = NULL;
    if (rule->control == NETSIM_CONTROL_BIFROST && !rule->by_arrivals)
        grants = netsim_arena_take(arena, lh_bifrost_grants(&rule->bifrost), sizeof *grants);
    uint32_t number = control->long_links_count++;
    if (arena->base == NULL)
        return;
    struct netsim_long_link *link = &control->long_links[number];
    *link = (struct netsim_long_link){.port = port};
    link->swing = (struct lh_swing){.thresholds = rule->pfc, .forward = rule->forward};
    if (rule->control == NETSIM_CONTROL_BIFROST) {
        lh_bifrost_init(&link->bifrost, &rule->bifrost, grants);
        link->slot_ps = rule->bifrost.slot_ns * NETSIM_PS_PER_NS;
        link->guard_ps = lh_bifrost_guard_ns(&rule->bifrost) * NETSIM_PS_PER_NS;
        link->idle = true;
    }
    control->network->ports[port].long_link = number;
}

/* A host takes what comes, so a link to one needs no credit. */
static bool needs_credit(const struct netsim_control_rule *rule, const struct netsim_port *port)
{
    return rule->control == NETSIM_CONTROL_CREDITS && (port->flags & NETSIM_PORT_TO_HOST) == 0;
}

static void credits_setup(struct netsim_flow_control *control, const struct netsim_control_rule *rule,
                          uint32_t port)
{
    struct netsim_credits *credits = &control->credits[port];
    lh_cbfc_receiver_init(&credits->receiver, rule->wide, rule->credit_bytes, rule->step_bytes);
    lh_cbfc_sender_init(&credits->sender, rule->wide, lh_cbfc_limit(&credits->receiver));
    control->network->ports[port].flags |= NETSIM_PORT_CREDITS | NETSIM_PORT_REPORTS;
}

static void port_setup(struct netsim_flow_control *control, const struct netsim_control_rule *rule,
                       uint32_t number)
{
    struct netsim_port *port = &control->network->ports[number];
    port->control = (uint8_t)rule->control;
    port->own_bytes = (port->flags & NETSIM_PORT_TO_HOST) != 0 ? 0 : rule->own_bytes;
    control->network->more[number].pfc = rule->pfc;
    if (rule->control == NETSIM_CONTROL_PFC)
        port->pause_above_bytes = rule->pfc.xoff_bytes;
    else if (has_state(rule) || needs_credit(rule, port))
        port->pause_above_bytes = 0;
    else
        port->pause_above_bytes = UINT64_MAX;
    if (rule->control == NETSIM_CONTROL_RELAY)
        port->flags |= NETSIM_PORT_REPORTS;
    if (needs_credit(rule, port))
        credits_setup(control, rule, number);
    if (rule->refresh_ps != 0)
        lh_flow_refresh_init(&control->refreshes[number], rule->refresh_ps / NETSIM_PS_PER_NS);
}

/* The graph knows cables, the network links. */
static uint32_t link_of(const struct netsim_flow_control *control, uint32_t cable, unsigned direction)
{
    uint32_t link = control->network->cable_links[cable];
    return direction == 0 ? link : control->network->ports[link].reverse;
}

static void rule_of(const struct netsim_config *config, const struct netsim_graph *graph, uint32_t cable,
                    unsigned direction, struct netsim_control_rule *rule)
{
    int rc = netsim_control_rule(config, graph, cable, direction, rule);
    assert(rc == 0);
    (void)rc;
}

static uint32_t count_states(const struct netsim_config *config, const struct netsim_graph *graph)
{
    uint32_t count = 0;
    struct netsim_control_rule rule;
    if (config->longs.control != NETSIM_LONG_BIFROST && config->longs.control != NETSIM_LONG_SWING)
        return 0;
    for (uint32_t c = 0; graph->cables != NULL && c < graph->cables_count; c++) {
        for (unsigned direction = 0; direction < 2; direction++) {
            rule_of(config, graph, c, direction, &rule);
            count += has_state(&rule);
        }
    }
    return count;
}

static bool has_own_refresh(const struct netsim_long_config *longs)
{
    return longs->credit_refresh_ps != 0 ||
           (longs->pfc_refresh_ps != 0 && longs->pfc_refresh_ps != NETSIM_NEVER);
}

/* Both directions of a cable. */
static void cable_setup(struct netsim_flow_control *control, const struct netsim_config *config,
                        const struct netsim_graph *graph, uint32_t cable, struct netsim_arena *arena)
{
    struct netsim_control_rule rule;
    for (unsigned direction = 0; direction < 2; direction++) {
        rule_of(config, graph, cable, direction, &rule);
        uint32_t port = arena->base != NULL ? link_of(control, cable, direction) : 0;
        if (has_state(&rule))
            state_setup(control, &rule, port, arena);
        if (arena->base == NULL)
            continue;
        port_setup(control, &rule, port);
        if (rule.control == NETSIM_CONTROL_RELAY)
            control->network->ports[control->network->ports[port].reverse].flags |= NETSIM_PORT_OF_RELAY;
    }
}

void netsim_flow_control_init(struct netsim_flow_control *control, struct netsim_network *network,
                              const struct netsim_config *config, struct netsim_arena *arena)
{
    const struct netsim_graph *graph = network->graph;
    bool credits = config->switches.credit_bytes != 0 || config->longs.control == NETSIM_LONG_CBFC;
    bool any = credits || config->switches.pfc || config->longs.control > NETSIM_LONG_NONE;
    *control = (struct netsim_flow_control){.network = network,
                                            .priority = config->transport.data_priority,
                                            .frame_bytes = netsim_frame_bytes(config)};
    network->lossless = (uint8_t)(any ? 1u << control->priority : 0u);
    if (credits)
        control->credits = netsim_arena_take(arena, network->ports_count, sizeof *control->credits);
    control->refreshing = config->switches.pfc_refresh_ps != 0 || has_own_refresh(&config->longs);
    if (control->refreshing)
        control->refreshes = netsim_arena_take(arena, network->ports_count, sizeof *control->refreshes);
    control->long_links =
        netsim_arena_take(arena, count_states(config, graph), sizeof *control->long_links);
    for (uint32_t c = 0; graph->cables != NULL && c < graph->cables_count; c++)
        cable_setup(control, config, graph, c, arena);
}

uint32_t netsim_flow_control_number_events(struct netsim_flow_control *control, uint32_t first)
{
    control->first_slot_event = first;
    first += NETSIM_LONG_EVENTS * control->long_links_count;
    control->first_refresh_event = first;
    return first + (control->refreshing ? 2 * control->network->ports_count : 0);
}
