/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/engine/wire.h"

#include "support/small_network.h"

static uint32_t arriving_at(struct netsim_network *network, netsim_time at_ps)
{
    uint32_t packet = new_packet(network, 3);
    network->pool.packets[packet].arrive_ps = at_ps;
    return packet;
}

/* Takes the event of link 0, and then the packet, as the loop does. */
static uint32_t next_arrival(struct netsim_network *network)
{
    netsim_time at_ps = 0;
    assert_int_equal(netsim_event_next(&network->events, NETSIM_TIME_MAX - 1, &at_ps), 1);
    uint32_t packet = netsim_wire_take(network, 0);
    assert_true(network->pool.packets[packet].arrive_ps == at_ps);
    return packet;
}

static void packets_arrive_in_order_with_one_event(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    uint32_t packets[3];
    for (unsigned i = 0; i < 3; i++) {
        packets[i] = arriving_at(network, 1000 + 500 * i);
        netsim_wire_append(network, 0, packets[i]);
    }
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(next_arrival(network), packets[i]);
    assert_int_equal(network->ports[0].wire_first, NETSIM_NO_PACKET);
    assert_false(netsim_event_pending(&network->events, 1));
    netsim_world_close(&world);
}

/* Any order of insertion; equal times in the order of insertion. */
static void faults_reorder_packets(void **state)
{
    (void)state;
    static const netsim_time times[] = {5000, 3000, 9000, 1000, 3000, 8000, 4000, 9000};
    enum { COUNT = sizeof times / sizeof times[0] };
    struct netsim_config config = small_config();
    config.topology.faults.reorder = 0.5;
    struct netsim_network *network = open_network(&config);
    network->ports[0].flags |= NETSIM_PORT_FAULTY;
    for (unsigned i = 0; i < COUNT; i++)
        netsim_wire_insert(network, 0, arriving_at(network, times[i]));
    netsim_time last_ps = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        netsim_time at_ps = network->pool.packets[next_arrival(network)].arrive_ps;
        assert_true(at_ps >= last_ps);
        last_ps = at_ps;
    }
    assert_int_equal(last_ps, 9000);
    assert_int_equal(network->more[0].overtakers, NETSIM_NO_PACKET);
    netsim_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_arrive_in_order_with_one_event),
        cmocka_unit_test(faults_reorder_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
