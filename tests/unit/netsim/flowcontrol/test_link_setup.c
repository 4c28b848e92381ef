/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/flowcontrol/link_setup.h"

#include "support/flow_effects.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_sets_up_its_long_link),
        cmocka_unit_test(a_link_to_a_host_has_no_credits_and_no_buffer),
        cmocka_unit_test(events_are_numbered_behind_each_other),
        cmocka_unit_test(without_flow_control_no_priority_is_lossless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
