/*
 * link_setup.c - see link_setup.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/flowcontrol/link_setup.h"

#include "netsim/flowcontrol/link_rules.h"

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
        link->rests = true;
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
