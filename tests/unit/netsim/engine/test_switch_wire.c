/*
 * test_switch_wire.c - packets on a wire, in the order in which they arrive.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/engine/switch.h"
#include "support/small_network.h"

/* ---- test launch ----------------------------------------------------------------------------------- */

/* 100 Gbit/s, 1 us. */
static void a_packet_arrives_after_its_time_on_the_link_and_the_delay(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    uint32_t packet = new_packet(network, 3);
    network->now_ps = 5000;
    assert_true(netsim_launch(network, 0, packet));
    assert_int_equal(network->ports[0].free_ps, 5000 + FULL * 80);
    assert_int_equal(network->pool.packets[packet].arrive_ps, 5000 + FULL * 80 + NETSIM_PS_PER_US);
    assert_true(network->ports[0].sent_packets == 1 && network->ports[0].sent_bytes == FULL);
    assert_int_equal(network->ports[0].sent_payload_bytes, 4096);
    assert_true(netsim_event_pending(&network->events, 1));
    netsim_world_close(&world);
}

/* At a tenth of the rate, for a microsecond: a packet that begins before or after has all of it. */
static void a_link_changes_its_rate_for_some_time(void **state)
{
    (void)state;
    static const netsim_time at_ps[] = {1999999, 2000000, 2999999, 3000000};
    static const netsim_time byte_ps[] = {80, 800, 800, 80};
    struct netsim_config config = small_config();
    config.topology.change_rate_bps = config.topology.rate_bps / 10;
    config.topology.change_from_ps = 2 * NETSIM_PS_PER_US;
    config.topology.change_for_ps = NETSIM_PS_PER_US;
    struct netsim_network *network = open_network(&config);
    uint32_t links[] = {netsim_world_link(&world, LEFT, RIGHT), netsim_world_link(&world, RIGHT, LEFT)};
    for (unsigned i = 0; i < 4; i++) {
        network->now_ps = at_ps[i];
        uint32_t packet = new_packet(network, 3);
        assert_true(netsim_launch(network, links[i % 2], packet));
        assert_int_equal(network->ports[links[i % 2]].free_ps, at_ps[i] + FULL * byte_ps[i]);
        assert_int_equal(network->pool.packets[packet].arrive_ps,
                         at_ps[i] + FULL * byte_ps[i] + NETSIM_PS_PER_US);
        packet = new_packet(network, 3);
        assert_true(netsim_launch(network, 0, packet)); /* a host's cable */
        assert_int_equal(network->ports[0].free_ps, at_ps[i] + FULL * 80);
    }
    netsim_world_close(&world);
}

static void a_lost_packet_stays_the_callers(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    config.topology.faults.loss = 1;
    struct netsim_network *network = open_network(&config);
    uint32_t link = netsim_world_link(&world, LEFT, RIGHT);
    uint32_t packet = new_packet(network, 3);
    assert_false(netsim_launch(network, link, packet));
    assert_true(network->more[link].lost_packets == 1 && network->totals.lost_packets == 1);
    assert_int_equal(network->ports[link].wire_first, NETSIM_NO_PACKET);
    assert_int_equal(network->pool.alive, 1);
    netsim_world_close(&world);
}

/* But faults spare a pause that lasts until the resume. */
static void faults_spare_a_pause_without_end(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    config.topology.faults.loss = 1;
    struct netsim_network *network = open_network(&config);
    uint32_t link = netsim_world_link(&world, LEFT, RIGHT);
    uint32_t packet = new_packet(network, 3);
    network->pool.packets[packet].kind = LH_NETSIM_PAUSE;
    network->pool.packets[packet].cookie = NETSIM_HOLD;
    assert_true(netsim_launch(network, link, packet));
    packet = new_packet(network, 3);
    network->pool.packets[packet].kind = LH_NETSIM_PAUSE;
    network->pool.packets[packet].cookie = 100;
    assert_false(netsim_launch(network, link, packet));
    assert_int_equal(network->totals.signals_lost, 1);
    netsim_world_close(&world);
}

static void a_copy_is_a_packet_of_its_own_but_not_of_raw_ones(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    config.topology.faults.duplicate = 1;
    struct netsim_network *network = open_network(&config);
    uint32_t link = netsim_world_link(&world, LEFT, RIGHT);
    assert_true(netsim_launch(network, link, new_packet(network, 3)));
    assert_int_equal(network->pool.alive, 2);
    uint32_t raw = new_packet(network, 3);
    network->pool.packets[raw].kind = LH_NETSIM_RAW;
    network->now_ps = network->ports[link].free_ps;
    assert_true(netsim_launch(network, link, raw));
    assert_int_equal(network->pool.alive, 3);
    assert_int_equal(network->totals.duplicated_packets, 1);
    netsim_world_close(&world);
}

static void count_calls(void *context, const struct lh_netsim_packet *packet)
{
    assert_int_equal(packet->wire_bytes, FULL);
    ++*(unsigned *)context;
}

static void a_watcher_sees_each_packet_of_its_link(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    unsigned calls = 0;
    network->watcher = count_calls;
    network->watcher_context = &calls;
    network->ports[1].flags |= NETSIM_PORT_WATCHED;
    assert_true(netsim_launch(network, 0, new_packet(network, 3)));
    assert_true(netsim_launch(network, 1, new_packet(network, 3)));
    assert_int_equal(calls, 1);
    netsim_world_close(&world);
}

static int run_launch(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_arrives_after_its_time_on_the_link_and_the_delay),
        cmocka_unit_test(a_link_changes_its_rate_for_some_time),
        cmocka_unit_test(a_lost_packet_stays_the_callers),
        cmocka_unit_test(faults_spare_a_pause_without_end),
        cmocka_unit_test(a_copy_is_a_packet_of_its_own_but_not_of_raw_ones),
        cmocka_unit_test(a_watcher_sees_each_packet_of_its_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test wire ------------------------------------------------------------------------------------- */

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

static int run_wire(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_arrive_in_order_with_one_event),
        cmocka_unit_test(faults_reorder_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_launch() + run_wire();
}
