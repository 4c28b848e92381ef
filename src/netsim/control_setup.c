/*
 * control_setup.c - gives each link its flow control.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/network.h"

/* Links that have a machine of their own. */
static bool has_machine(const struct netsim_control_rule *rule)
{
    return rule->control == NETSIM_CONTROL_BIFROST || rule->control == NETSIM_CONTROL_RELAY;
}

static void machine_setup(struct netsim *net, const struct netsim_control_rule *rule, uint32_t port,
                          struct netsim_arena *arena)
{
    uint32_t *grants = NULL;
    if (rule->control == NETSIM_CONTROL_BIFROST && !rule->by_arrivals)
        grants = netsim_arena_take(arena, lh_bifrost_grants(&rule->bifrost), sizeof *grants);
    uint32_t number = net->long_links_count++;
    if (arena->base == NULL)
        return;
    struct netsim_long_link *machine = &net->long_links[number];
    *machine = (struct netsim_long_link){.port = port};
    machine->swing = (struct lh_swing){.thresholds = rule->pfc, .forward = rule->forward};
    if (rule->control == NETSIM_CONTROL_BIFROST) {
        lh_bifrost_init(&machine->bifrost, &rule->bifrost, grants);
        machine->slot_ps = rule->bifrost.slot_ns * NETSIM_PS_PER_NS;
        machine->guard_ps = lh_bifrost_guard_ns(&rule->bifrost) * NETSIM_PS_PER_NS;
        machine->rests = true;
    }
    net->ports[port].machine = number;
}

/* A host takes what comes, so a link to one needs no credit. */
static bool needs_credit(const struct netsim_control_rule *rule, const struct netsim_port *port)
{
    return rule->control == NETSIM_CONTROL_CREDITS && (port->flags & NETSIM_PORT_TO_HOST) == 0;
}

static void credits_setup(struct netsim *net, const struct netsim_control_rule *rule, uint32_t port)
{
    struct netsim_credits *credits = &net->credits[port];
    lh_cbfc_receiver_init(&credits->receiver, rule->wide, rule->credit_bytes, rule->step_bytes);
    lh_cbfc_sender_init(&credits->sender, rule->wide, lh_cbfc_limit(&credits->receiver));
    net->ports[port].flags |= NETSIM_PORT_CREDITS | NETSIM_PORT_TOLD;
}

static void port_setup(struct netsim *net, const struct netsim_control_rule *rule, uint32_t number)
{
    struct netsim_port *port = &net->ports[number];
    port->control = (uint8_t)rule->control;
    port->own_bytes = (port->flags & NETSIM_PORT_TO_HOST) != 0 ? 0 : rule->own_bytes;
    net->more[number].pfc = rule->pfc;
    if (rule->control == NETSIM_CONTROL_PFC)
        port->pause_above_bytes = rule->pfc.xoff_bytes;
    else if (has_machine(rule) || needs_credit(rule, port))
        port->pause_above_bytes = 0;
    else
        port->pause_above_bytes = UINT64_MAX;
    if (rule->control == NETSIM_CONTROL_RELAY)
        port->flags |= NETSIM_PORT_TOLD;
    if (needs_credit(rule, port))
        credits_setup(net, rule, number);
    if (rule->refresh_ps != 0)
        lh_flow_refresh_init(&net->refreshes[number], rule->refresh_ps / NETSIM_PS_PER_NS);
}

static uint64_t in_proportion(uint64_t bytes, uint64_t rate_bps, uint64_t of_bps)
{
    return of_bps == 0 ? bytes : (uint64_t)((double)bytes * ((double)rate_bps / (double)of_bps));
}

static void marking_setup(struct netsim *net, uint32_t number)
{
    const struct netsim_switch_config *switches = &net->switch_config;
    struct netsim_port_more *more = &net->more[number];
    more->ecn_min_bytes = in_proportion(switches->ecn_min_bytes, more->rate_bps, switches->ecn_rate_bps);
    more->ecn_max_bytes = in_proportion(switches->ecn_max_bytes, more->rate_bps, switches->ecn_rate_bps);
}

static void drift_setup(struct netsim *net, const struct netsim_long_config *longs, uint32_t port)
{
    if (longs->drift_ps == 0)
        return;
    netsim_drift_init(&net->more[port].drift, longs->drift_ps, longs->drift_period_ps);
    net->ports[port].flags |= NETSIM_PORT_DRIFTS;
}

/* The graph knows cables, the network links. */
static uint32_t link_of(const struct netsim *net, uint32_t cable, unsigned direction)
{
    uint32_t link = net->cable_links[cable];
    return direction == 0 ? link : net->ports[link].reverse;
}

static void rule_of(const struct netsim_config *config, const struct netsim_graph *graph, uint32_t cable,
                    unsigned direction, struct netsim_control_rule *rule)
{
    int rc = netsim_control_rule(config, graph, cable, direction, rule);
    assert(rc == 0);
    (void)rc;
}

static uint32_t count_machines(const struct netsim_config *config, const struct netsim_graph *graph)
{
    uint32_t count = 0;
    struct netsim_control_rule rule;
    if (config->longs.control != NETSIM_LONG_BIFROST && config->longs.control != NETSIM_LONG_SWING)
        return 0;
    for (uint32_t c = 0; graph->cables != NULL && c < graph->cables_count; c++) {
        for (unsigned direction = 0; direction < 2; direction++) {
            rule_of(config, graph, c, direction, &rule);
            count += has_machine(&rule);
        }
    }
    return count;
}

static bool has_own_refresh(const struct netsim_long_config *longs)
{
    return longs->credit_refresh_ps != 0 ||
           (longs->pfc_refresh_ps != 0 && longs->pfc_refresh_ps != NETSIM_NEVER);
}

void netsim_control_setup(struct netsim *net, const struct netsim_config *config,
                          const struct netsim_graph *graph, struct netsim_arena *arena)
{
    struct netsim_control_rule rule;
    bool credits = config->switches.credit_bytes != 0 || config->longs.control == NETSIM_LONG_CBFC;
    bool any = credits || config->switches.pfc || config->longs.control > NETSIM_LONG_NONE;
    net->frame_bytes = netsim_frame_bytes(config);
    net->lossless = (uint8_t)(any ? 1u << config->transport.data_priority : 0u);
    if (credits)
        net->credits = netsim_arena_take(arena, net->ports_count, sizeof *net->credits);
    net->refreshing = config->switches.pfc_refresh_ps != 0 || has_own_refresh(&config->longs);
    if (net->refreshing)
        net->refreshes = netsim_arena_take(arena, net->ports_count, sizeof *net->refreshes);
    net->long_links = netsim_arena_take(arena, count_machines(config, graph), sizeof *net->long_links);
    for (uint32_t c = 0; graph->cables != NULL && c < graph->cables_count; c++) {
        for (unsigned direction = 0; direction < 2; direction++) {
            rule_of(config, graph, c, direction, &rule);
            uint32_t port = arena->base != NULL ? link_of(net, c, direction) : 0;
            if (has_machine(&rule))
                machine_setup(net, &rule, port, arena);
            if (arena->base == NULL)
                continue;
            port_setup(net, &rule, port);
            if (rule.control == NETSIM_CONTROL_RELAY)
                net->ports[net->ports[port].reverse].flags |= NETSIM_PORT_OF_RELAY;
            marking_setup(net, port);
            if (netsim_cable_is_long(graph, &graph->cables[c]))
                drift_setup(net, &config->longs, port);
        }
    }
}
