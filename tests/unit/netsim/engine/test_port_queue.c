/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/engine/port_queue.h"

#include "support/small_network.h"

static void each_priority_is_a_queue_in_order(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    struct netsim_port *port = &network->ports[0];
    uint32_t packets[4];
    for (unsigned i = 0; i < 4; i++) {
        packets[i] = new_packet(network, i % 2 == 0 ? 2 : 5);
        netsim_queue_append(network, 0, packets[i]);
    }
    assert_int_equal(netsim_queue_ready(port), 1u << 2 | 1u << 5);
    assert_int_equal(netsim_queue_highest(netsim_queue_ready(port)), 5);
    assert_true(port->queued_bytes == 4 * FULL && port->queue_bytes[5] == 2 * FULL);
    assert_int_equal(netsim_queue_take(network, port, 5), packets[1]);
    assert_int_equal(netsim_queue_take(network, port, 5), packets[3]);
    assert_int_equal(netsim_queue_ready(port), 1u << 2);
    assert_int_equal(netsim_queue_take(network, port, 2), packets[0]);
    assert_int_equal(netsim_queue_take(network, port, 2), packets[2]);
    assert_true(netsim_queue_ready(port) == 0 && port->queued_bytes == 0);
    assert_int_equal(port->queued_max_bytes, 4 * FULL);
    netsim_world_close(&world);
}

static void signals_have_a_queue_of_their_own(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    uint32_t first = new_packet(network, 3);
    uint32_t second = new_packet(network, 3);
    netsim_queue_append_urgent(network, 0, first);
    netsim_queue_append_urgent(network, 0, second);
    assert_int_equal(network->ports[0].queued_bytes, 0);
    assert_int_equal(netsim_queue_take_urgent(network, 0), first);
    assert_int_equal(netsim_queue_take_urgent(network, 0), second);
    assert_int_equal(network->ports[0].urgent_first, NETSIM_NO_PACKET);
    assert_int_equal(network->urgent_packets, 2);
    netsim_world_close(&world);
}

/* Time counts while any priority is paused. */
static void a_paused_priority_is_not_ready(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    netsim_queue_append(network, 0, new_packet(network, 3));
    network->now_ps = 100;
    netsim_queue_pause(network, 0, 3);
    assert_int_equal(netsim_queue_ready(&network->ports[0]), 0);
    network->now_ps = 150;
    netsim_queue_pause(network, 0, 3);
    netsim_queue_pause(network, 0, 4);
    network->now_ps = 200;
    netsim_queue_resume(network, 0, 3);
    assert_int_equal(netsim_queue_ready(&network->ports[0]), 1u << 3);
    assert_int_equal(network->more[0].paused_ps, 0);
    network->now_ps = 300;
    netsim_queue_resume(network, 0, 4);
    netsim_queue_resume(network, 0, 4);
    assert_int_equal(network->more[0].paused_ps, 200);
    netsim_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_priority_is_a_queue_in_order),
        cmocka_unit_test(signals_have_a_queue_of_their_own),
        cmocka_unit_test(a_paused_priority_is_not_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
