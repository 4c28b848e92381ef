/*
 * test_link_rules.c - which link is under which flow control, with how much buffer; and what cannot
 * work.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "netsim/config/config_keys.h"
#include "netsim/flowcontrol/link_rules.h"
#include "support/flow_effects.h"
#include "support/netsim_build.h"

/* ---- test link rules ------------------------------------------------------------------------------- */

#define KIB 1024u
#define MIB (1024u * KIB)

static struct netsim_config link_rules_config;
static struct netsim_graph link_rules_graph;
static void *memory;

static void set(const char *key, const char *value)
{
    if (netsim_key_set(&link_rules_config, key, value) != 0)
        fail_msg("%s = %s: %s", key, value, lh_last_error());
}

/* The network of the Bifrost paper: 100 Gbit/s within, 400 over 600 km. */
static int paper(void **state)
{
    (void)state;
    netsim_config_init(&link_rules_config);
    set("topology.kind", "two-datacenters");
    set("topology.hosts", "2");
    set("topology.long_delay", "600km");
    set("transport.payload", "1448");
    set("transport.header", "52");
    set("switch.pfc", "on");
    set("switch.buffer", "10MiB");
    set("switch.xoff", "288KiB");
    set("switch.xon", "288KiB");
    set("switch.pfc_alpha", "0.25");
    set("long.port_buffer", "318KiB");
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(memory);
    memory = NULL;
    return 0;
}

static void build(void)
{
    free(memory);
    link_rules_config.topology.relays = link_rules_config.longs.control == NETSIM_LONG_SWING;
    assert_int_equal(build_topology(&link_rules_config.topology, &link_rules_graph, &memory), 0);
}

/* The rule of what goes from one node to the other. */
static struct netsim_control_rule rule_of(const char *from, const char *to)
{
    struct netsim_control_rule rule = {0};
    for (uint32_t c = 0; c < link_rules_graph.cables_count; c++)
        for (unsigned direction = 0; direction < 2; direction++) {
            const uint32_t *ends = link_rules_graph.cables[c].ends;
            if (strcmp(link_rules_graph.nodes[ends[direction]].name, from) == 0 &&
                strcmp(link_rules_graph.nodes[ends[1 - direction]].name, to) == 0) {
                assert_int_equal(
                    netsim_control_rule(&link_rules_config, &link_rules_graph, c, direction, &rule), 0);
                return rule;
            }
        }
    fail_msg("no link from %s to %s", from, to);
    return rule;
}

static void refuses(int code, const char *words)
{
    build();
    assert_int_equal(netsim_control_check(&link_rules_config, &link_rules_graph), -code);
    if (strstr(lh_last_error(), words) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", lh_last_error(), words);
}

static void by_default_all_links_are_alike(void **state)
{
    (void)state;
    build();
    assert_int_equal(netsim_control_check(&link_rules_config, &link_rules_graph), 0);
    const struct netsim_control_rule inside = rule_of("a.core0", "a.p0.agg0");
    const struct netsim_control_rule across = rule_of("a.dci", "b.dci");
    assert_int_equal(inside.control, NETSIM_CONTROL_PFC);
    assert_int_equal(across.control, NETSIM_CONTROL_PFC);
    assert_true(inside.own_bytes == 0 && across.own_bytes == 0);
    assert_true(inside.pfc.xoff_bytes == 288 * KIB && inside.pfc.alpha == 0.25 && across.pfc.alpha == 0.25);
}

/* What a switch at the end of a long link has is not shared: a core's link has its threshold and
 * headroom. */
static void border_switches_share_nothing(void **state)
{
    (void)state;
    set("long.flow_control", "pfc");
    set("long.xoff", "1MiB");
    set("long.buffer", "287MiB");
    build();
    assert_int_equal(netsim_control_check(&link_rules_config, &link_rules_graph), 0);
    const struct netsim_control_rule core = rule_of("a.core1", "a.dci");
    assert_true(core.control == NETSIM_CONTROL_PFC && core.own_bytes == 318 * KIB);
    assert_true(core.pfc.xoff_bytes == 288 * KIB && core.pfc.alpha == 0);
    const struct netsim_control_rule across = rule_of("b.dci", "a.dci");
    assert_true(across.own_bytes == 287 * MIB && across.pfc.xoff_bytes == MIB);
    assert_int_equal(across.pfc.xon_bytes, MIB);
    assert_int_equal(rule_of("a.dci", "a.core1").own_bytes, 0);
    assert_true(rule_of("a.dci", "a.core1").pfc.alpha == 0.25);
}

static void what_is_not_given_is_what_is_needed(void **state)
{
    (void)state;
    set("long.flow_control", "pfc");
    build();
    struct netsim_control_rule rule = rule_of("a.dci", "b.dci");
    assert_int_equal(rule.own_bytes, 600006064);
    assert_int_equal(rule.pfc.xoff_bytes, 300003000);
    set("long.flow_control", "bifrost");
    rule = rule_of("a.dci", "b.dci");
    assert_int_equal(rule.bifrost.delta_bytes, 300000000 + 1500 + 64);
    assert_int_equal(rule.bifrost.buffer_bytes, rule.bifrost.delta_bytes + 2 * 500000 + 64);
    assert_int_equal(rule.own_bytes, rule.bifrost.buffer_bytes + 1500 + (600 + 2 + 2) * 1500);
    assert_int_equal(lh_bifrost_check(&rule.bifrost), 0);
    set("long.flow_control", "cbfc");
    rule = rule_of("a.dci", "b.dci");
    assert_true(rule.control == NETSIM_CONTROL_CREDITS && rule.wide && rule.own_bytes > 307200000);
    set("long.flow_control", "none");
    rule = rule_of("a.dci", "b.dci");
    assert_true(rule.control == NETSIM_CONTROL_NONE && rule.own_bytes == 300001500);
}

static void relays_stand_between(void **state)
{
    (void)state;
    set("long.flow_control", "swing");
    set("long.buffer", "287MiB");
    set("long.xoff", "198KiB");
    build();
    assert_int_equal(netsim_control_check(&link_rules_config, &link_rules_graph), 0);
    assert_int_equal(link_rules_graph.nodes_count, 32 + 44);
    const struct netsim_control_rule across = rule_of("a.relay", "b.relay");
    assert_true(across.control == NETSIM_CONTROL_RELAY && across.forward && across.own_bytes == 287 * MIB);
    assert_int_equal(across.pfc.xoff_bytes, 198 * KIB);
    assert_true(rule_of("a.dci", "a.relay").forward);
    assert_int_equal(rule_of("b.relay", "b.dci").control, NETSIM_CONTROL_PFC);
    assert_int_equal(rule_of("b.relay", "b.dci").own_bytes, 318 * KIB);
    set("long.relay", "threshold");
    assert_false(rule_of("b.relay", "a.relay").forward);
}

static void credits_are_everywhere_but_to_hosts(void **state)
{
    (void)state;
    set("switch.pfc", "off");
    set("switch.credits", "318KiB");
    set("long.flow_control", "cbfc");
    set("long.credits", "12bit");
    build();
    assert_int_equal(rule_of("host0", "a.p0.edge0").own_bytes, 318 * KIB);
    assert_int_equal(rule_of("a.core0", "a.dci").own_bytes, 318 * KIB);
    assert_false(rule_of("a.dci", "b.dci").wide);
    assert_true(rule_of("a.core0", "a.dci").wide);
}

static void credits_are_told_by_the_packet_or_in_steps(void **state)
{
    (void)state;
    set("switch.pfc", "off");
    set("switch.credits", "318KiB");
    set("long.flow_control", "cbfc");
    build();
    assert_int_equal(rule_of("host0", "a.p0.edge0").step_bytes, 1500);
    assert_int_equal(rule_of("a.dci", "b.dci").step_bytes, 1500);
    set("switch.credit_step", "125kB");
    set("long.credit_step", "500kB");
    assert_int_equal(rule_of("host0", "a.p0.edge0").step_bytes, 125000);
    assert_int_equal(rule_of("a.core0", "a.dci").step_bytes, 125000);
    assert_int_equal(rule_of("a.dci", "b.dci").step_bytes, 500000);
    set("long.buffer", "501627");
    refuses(LH_EINVAL, "long.credit_step 500000");
    set("long.buffer", "501628");
    build();
    assert_int_equal(netsim_control_check(&link_rules_config, &link_rules_graph), 0);
    set("long.credits", "12bit"); /* which have 131,072 at most */
    refuses(LH_EINVAL, "at most 129444");
}

/* A buffer of little more than a packet is told of in smaller steps, or nobody would ever go on. */
static void a_small_buffer_is_told_of_block_by_block(void **state)
{
    (void)state;
    set("long.flow_control", "cbfc");
    set("long.buffer", "1600");
    build();
    assert_int_equal(netsim_control_check(&link_rules_config, &link_rules_graph), 0);
    assert_int_equal(rule_of("a.dci", "b.dci").step_bytes, 64);
    set("transport.ack_priority", "3");
    assert_int_equal(netsim_config_check(&link_rules_config), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "transport.ack_priority 3"));
}

static void overbooking_shares_out_more_than_is_there(void **state)
{
    (void)state;
    set("long.flow_control", "bifrost");
    build();
    const struct netsim_control_rule whole = rule_of("a.dci", "b.dci");
    set("long.overbook", "4");
    const struct netsim_control_rule part = rule_of("a.dci", "b.dci");
    assert_int_equal(part.own_bytes, whole.own_bytes / 4);
    assert_int_equal(part.bifrost.buffer_bytes, whole.bifrost.buffer_bytes);
    set("long.buffer", "80MB");
    set("long.delta", "301MB");
    const struct netsim_control_rule given = rule_of("a.dci", "b.dci");
    assert_int_equal(given.own_bytes, 80000000);
    /* Room for what slips past pauses is kept, a packet for each slot on its way. */
    uint64_t slipped =
        (lh_bifrost_grants(&given.bifrost) + 2) * (uint64_t)netsim_frame_bytes(&link_rules_config);
    assert_int_equal(given.bifrost.buffer_bytes + given.bifrost.headroom_bytes + slipped, 320000000);
    set("long.buffer", "70MB");
    refuses(LH_EINVAL, "long.buffer 70000000 bytes with long.overbook: Bifrost needs 75");
    set("long.flow_control", "cbfc");
    assert_int_equal(rule_of("a.dci", "b.dci").own_bytes, 70000000);
    assert_int_equal(rule_of("a.dci", "b.dci").credit_bytes, 280000000);
    set("long.buffer", "2000");
    set("long.overbook", "1.5");
    assert_int_equal(rule_of("a.dci", "b.dci").credit_bytes, 3000);
    set("long.buffer", "1000");
    set("long.overbook", "2");
    refuses(LH_EINVAL, "long.overbook 2");
}

static void what_cannot_work_is_refused(void **state)
{
    (void)state;
    set("long.flow_control", "pfc");
    set("long.buffer", "286MiB"); /* a BDP is 300 MB */
    refuses(LH_EINVAL, "headroom");
    set("long.buffer", "287MiB");
    set("long.xoff", "288MiB");
    refuses(LH_EINVAL, "lower xoff");
    set("long.xoff", "1MiB");
    set("long.xon", "2MiB");
    refuses(LH_EINVAL, "lower xon");
    set("long.flow_control", "bifrost");
    refuses(LH_EINVAL, "long.buffer"); /* the paper's 287 MB, for what the link holds */
    set("long.delta", "286MiB");
    build();
    assert_int_equal(netsim_control_check(&link_rules_config, &link_rules_graph), 0);
    set("topology.long_delay", "9us");
    refuses(LH_EINVAL, "long.slot 10000 ns");
    set("long.flow_control", "cbfc");
    set("long.buffer", "1000");
    refuses(LH_EINVAL, "1500");
    set("long.flow_control", "swing");
    set("switch.pfc", "off");
    refuses(LH_EINVAL, "switch.pfc");
    set("switch.pfc", "on");
    link_rules_config.topology.relays = false;
    free(memory);
    assert_int_equal(build_topology(&link_rules_config.topology, &link_rules_graph, &memory), 0);
    assert_int_equal(netsim_control_check(&link_rules_config, &link_rules_graph), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "tier=relay"));
    set("topology.kind", "fat-tree");
    refuses(LH_EINVAL, "site=N");
    set("topology.kind", "two-datacenters");
    set("topology.long_delay", "2s");
    refuses(LH_ERANGE, "a second");
}

static int run_link_rules(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(by_default_all_links_are_alike, paper, end),
        cmocka_unit_test_setup_teardown(border_switches_share_nothing, paper, end),
        cmocka_unit_test_setup_teardown(what_is_not_given_is_what_is_needed, paper, end),
        cmocka_unit_test_setup_teardown(relays_stand_between, paper, end),
        cmocka_unit_test_setup_teardown(credits_are_everywhere_but_to_hosts, paper, end),
        cmocka_unit_test_setup_teardown(credits_are_told_by_the_packet_or_in_steps, paper, end),
        cmocka_unit_test_setup_teardown(a_small_buffer_is_told_of_block_by_block, paper, end),
        cmocka_unit_test_setup_teardown(overbooking_shares_out_more_than_is_there, paper, end),
        cmocka_unit_test_setup_teardown(what_cannot_work_is_refused, paper, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test link setup ------------------------------------------------------------------------------- */

static void each_way_sets_up_its_long_link(void **state)
{
    (void)state;
    static const struct {
        enum netsim_control control;
        uint32_t states; /* of both directions; a relay's switch has one for the relay, too */
        bool reports;
        bool credits;
    } expects[WAYS] = {
        [WAY_PFC] = {NETSIM_CONTROL_PFC, 0, false, false},
        [WAY_BIFROST] = {NETSIM_CONTROL_BIFROST, 2, false, false},
        [WAY_GUARDED] = {NETSIM_CONTROL_BIFROST, 2, false, false},
        [WAY_PRINTED] = {NETSIM_CONTROL_BIFROST, 2, false, false},
        [WAY_CBFC] = {NETSIM_CONTROL_CREDITS, 0, true, true},
        [WAY_SWING] = {NETSIM_CONTROL_RELAY, 4, true, false},
        [WAY_SWING_THRESHOLD] = {NETSIM_CONTROL_RELAY, 4, true, false},
    };
    for (unsigned way = 0; way < WAYS; way++) {
        struct netsim_config config = way_config(&ways[way]);
        uint32_t link = open_way(&config);
        const struct netsim_port *port = &world.net.network.ports[link];
        assert_int_equal(port->control, expects[way].control);
        assert_int_equal(world.net.control.long_links_count, expects[way].states);
        assert_int_equal((port->flags & NETSIM_PORT_REPORTS) != 0, expects[way].reports);
        assert_int_equal((port->flags & NETSIM_PORT_CREDITS) != 0, expects[way].credits);
        assert_true(port->own_bytes > 0);
        assert_int_equal(world.net.network.lossless, 1u << DATA);
        if (expects[way].states != 0)
            assert_int_equal(world.net.control.long_links[port->long_link].port, link);
        netsim_world_close(&world);
    }
}

static void a_link_to_a_host_has_no_credits_and_no_buffer(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_CBFC]);
    config.switches.pfc = false;
    config.switches.credit_bytes = 100000;
    open_way(&config);
    for (uint32_t p = 0; p < world.net.network.ports_count; p++) {
        const struct netsim_port *port = &world.net.network.ports[p];
        bool to_host = port->far < world.graph.hosts;
        assert_int_equal((port->flags & NETSIM_PORT_CREDITS) != 0, !to_host);
        assert_int_equal(port->own_bytes != 0, !to_host);
    }
    netsim_world_close(&world);
}

static void events_are_numbered_behind_each_other(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_BIFROST]);
    open_way(&config);
    struct netsim_flow_control *control = &world.net.control;
    assert_int_equal(netsim_flow_control_number_events(control, 1000), 1000 + 2 * NETSIM_LONG_EVENTS);
    assert_int_equal(control->first_slot_event, 1000);
    netsim_world_close(&world);
    config = way_config(&ways[WAY_PFC]);
    config.switches.pfc_refresh_ps = config.longs.pfc_refresh_ps = 50 * NETSIM_PS_PER_US;
    open_way(&config);
    assert_int_equal(netsim_flow_control_number_events(control, 1000),
                     1000 + 2 * world.net.network.ports_count);
    assert_int_equal(control->first_refresh_event, 1000);
    netsim_world_close(&world);
}

static void without_flow_control_no_priority_is_lossless(void **state)
{
    (void)state;
    struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
    netsim_world_open(&world, &config, NULL, 0, 1);
    assert_int_equal(world.net.network.lossless, 0);
    for (uint32_t p = 0; p < world.net.network.ports_count; p++)
        assert_true(world.net.network.ports[p].pause_above_bytes == UINT64_MAX);
    netsim_world_close(&world);
}

static int run_link_setup(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_sets_up_its_long_link),
        cmocka_unit_test(a_link_to_a_host_has_no_credits_and_no_buffer),
        cmocka_unit_test(events_are_numbered_behind_each_other),
        cmocka_unit_test(without_flow_control_no_priority_is_lossless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_link_rules() + run_link_setup();
}
