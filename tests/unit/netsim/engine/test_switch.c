/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/engine/switch.h"

#include "netsim/engine/network.h"
#include "support/small_network.h"

/* A packet of host 0 comes to the left switch. */
static enum netsim_arrival arrive(struct netsim_network *network, uint32_t packet, uint32_t *out)
{
    return netsim_switch_on_arrival(network, 0, packet, out);
}

static void a_packet_occupies_the_buffer_until_it_leaves(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    uint32_t packet = new_packet(network, 3);
    uint32_t out = 0;
    assert_int_equal(arrive(network, packet, &out), NETSIM_ARRIVAL_ADMITTED);
    assert_int_equal(out, netsim_world_link(&world, LEFT, RIGHT));
    assert_int_equal(network->switches[0].used_bytes, FULL);
    assert_int_equal(network->ports[0].held_bytes[3], FULL);
    assert_false(netsim_switch_on_departure(network, out, &network->pool.packets[packet]));
    assert_int_equal(network->switches[0].used_bytes, 0);
    assert_true(network->ports[0].held_bytes[3] == 0 && network->ports[0].held_max_bytes == FULL);
    netsim_world_close(&world);
}

static void a_full_buffer_refuses(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    config.switches.buffer_bytes = 2 * FULL;
    struct netsim_network *network = open_network(&config);
    uint32_t out = 0;
    assert_int_equal(arrive(network, new_packet(network, 3), &out), NETSIM_ARRIVAL_ADMITTED);
    assert_int_equal(arrive(network, new_packet(network, 3), &out), NETSIM_ARRIVAL_ADMITTED);
    assert_int_equal(arrive(network, new_packet(network, 3), &out), NETSIM_ARRIVAL_REFUSED);
    assert_int_equal(network->switches[0].used_bytes, 2 * FULL);
    netsim_world_close(&world);
}

/* Of one priority at one port; alpha: a share of the free buffer. */
static void a_long_queue_refuses(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    config.switches.queue_bytes = FULL;
    struct netsim_network *network = open_network(&config);
    uint32_t out = 0;
    uint32_t packet = new_packet(network, 3);
    assert_int_equal(arrive(network, packet, &out), NETSIM_ARRIVAL_ADMITTED);
    netsim_queue_append(network, out, packet);
    assert_int_equal(arrive(network, new_packet(network, 3), &out), NETSIM_ARRIVAL_REFUSED);
    assert_int_equal(arrive(network, new_packet(network, 4), &out), NETSIM_ARRIVAL_ADMITTED);
    netsim_world_close(&world);
    config.switches.queue_bytes = 0;
    config.switches.alpha = 1;
    config.switches.buffer_bytes = 2 * FULL;
    network = open_network(&config);
    packet = new_packet(network, 3);
    assert_int_equal(arrive(network, packet, &out), NETSIM_ARRIVAL_ADMITTED);
    netsim_queue_append(network, out, packet);
    assert_int_equal(arrive(network, new_packet(network, 3), &out), NETSIM_ARRIVAL_REFUSED);
    netsim_world_close(&world);
}

static void flow_control_takes_what_is_above_its_threshold(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    config.switches.pfc = true;
    config.switches.pfc_xoff_bytes = config.switches.pfc_xon_bytes = FULL;
    struct netsim_network *network = open_network(&config);
    uint32_t out = 0;
    uint32_t packet = new_packet(network, 3);
    assert_int_equal(arrive(network, packet, &out), NETSIM_ARRIVAL_ADMITTED);
    assert_int_equal(arrive(network, new_packet(network, 3), &out), NETSIM_ARRIVAL_REPORTED);
    network->ports[0].stopped = 1u << 3; /* so departures are of interest */
    assert_true(netsim_switch_on_departure(network, out, &network->pool.packets[packet]));
    packet = new_packet(network, 4); /* another priority never is */
    assert_int_equal(arrive(network, packet, &out), NETSIM_ARRIVAL_ADMITTED);
    assert_false(netsim_switch_on_departure(network, out, &network->pool.packets[packet]));
    netsim_world_close(&world);
}

static void what_cannot_go_on(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    uint32_t out = 0;
    uint32_t packet = new_packet(network, 3);
    network->pool.packets[packet].flags = NETSIM_CORRUPTED;
    assert_int_equal(arrive(network, packet, &out), NETSIM_ARRIVAL_CORRUPTED);
    network->pool.packets[packet].kind = LH_NETSIM_RAW; /* which its owner takes as it is */
    assert_int_equal(arrive(network, packet, &out), NETSIM_ARRIVAL_ADMITTED);
    network->switches[0].route.up_width = 0;
    assert_int_equal(arrive(network, new_packet(network, 3), &out), NETSIM_ARRIVAL_UNROUTABLE);
    assert_int_equal(network->totals.unroutable_packets, 1);
    netsim_world_close(&world);
}

static void a_queue_above_ecn_max_marks(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    config.switches.ecn_min_bytes = config.switches.ecn_max_bytes = FULL;
    config.switches.ecn_probability = 1;
    struct netsim_network *network = open_network(&config);
    uint32_t out = 0;
    uint32_t packet = new_packet(network, 3);
    arrive(network, packet, &out);
    struct netsim_packet *leaving = &network->pool.packets[packet];
    network->ports[out].queue_bytes[3] = FULL + 1; /* behind it */
    netsim_switch_on_departure(network, out, leaving);
    assert_true((leaving->flags & NETSIM_MARKED) != 0 && network->more[out].marked_packets == 1);
    packet = new_packet(network, 3);
    arrive(network, packet, &out);
    leaving = &network->pool.packets[packet];
    network->ports[out].queue_bytes[3] = FULL;
    netsim_switch_on_departure(network, out, leaving);
    assert_int_equal(leaving->flags & NETSIM_MARKED, 0);
    netsim_world_close(&world);
}

/* Four spines: each flow keeps one; sprayed packets take all, and that of the flow draws nothing. */
static void flows_keep_a_port_and_sprayed_packets_do_not(void **state)
{
    (void)state;
    for (unsigned spray = 0; spray < 2; spray++) {
        struct netsim_config config = netsim_world_config(NETSIM_LEAF_SPINE);
        config.switches.spray = spray != 0;
        struct netsim_network *network = open_network(&config);
        uint32_t flow_port = netsim_switch_flow_port(&network->switches[0], 15, 42);
        unsigned taken = 0;
        for (unsigned i = 0; i < 100; i++) {
            uint32_t packet = new_packet(network, 3);
            uint32_t out = 0;
            network->pool.packets[packet].destination = 15;
            network->pool.packets[packet].entropy = 42;
            assert_int_equal(arrive(network, packet, &out), NETSIM_ARRIVAL_ADMITTED);
            taken |= 1u << (out - network->switches[0].first_port);
            assert_true(spray != 0 || out == flow_port);
        }
        assert_int_equal(__builtin_popcount(taken), spray != 0 ? 4 : 1);
        assert_int_equal(netsim_switch_flow_port(&network->switches[0], 15, 42), flow_port);
        netsim_world_close(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_occupies_the_buffer_until_it_leaves),
        cmocka_unit_test(a_full_buffer_refuses),
        cmocka_unit_test(a_long_queue_refuses),
        cmocka_unit_test(flow_control_takes_what_is_above_its_threshold),
        cmocka_unit_test(what_cannot_go_on),
        cmocka_unit_test(a_queue_above_ecn_max_marks),
        cmocka_unit_test(flows_keep_a_port_and_sprayed_packets_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
