/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/engine/raw.h"

#include "support/small_network.h"

static const struct netsim_raw request = {.cookie = 99, .source = 0, .destination = 3, .wire_bytes = 1500};

static void ended_packets_come_in_order(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    struct netsim_raw raw;
    assert_false(netsim_raw_next(network, &raw));
    uint32_t arrived = netsim_raw_new(network, &request, 5, 3);
    uint32_t dropped = netsim_raw_new(network, &request, 5, 3);
    network->now_ps = 777;
    netsim_packet_drop(network, dropped);
    netsim_raw_end(network, arrived, true);
    assert_true(netsim_raw_next(network, &raw));
    assert_true(raw.destination == NETSIM_DROPPED && raw.cookie == 99 && raw.arrive_ps == 777);
    assert_true(netsim_raw_next(network, &raw));
    assert_true(raw.destination == 3 && raw.source == 0 && raw.wire_bytes == 1500 && !raw.corrupted);
    assert_false(netsim_raw_next(network, &raw));
    assert_int_equal(network->pool.alive, 0);
    netsim_world_close(&world);
}

static void a_corrupted_packet_names_its_bit(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    struct netsim_raw raw;
    uint32_t packet = netsim_raw_new(network, &request, 5, 3);
    network->pool.packets[packet].flags |= NETSIM_CORRUPTED;
    network->pool.packets[packet].echo = 1234;
    netsim_raw_end(network, packet, true);
    assert_true(netsim_raw_next(network, &raw));
    assert_true(raw.corrupted && raw.corrupt_bit == 1234);
    netsim_world_close(&world);
}

static void packets_for_signals_are_left_alone(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    config.packets_max = 64;
    config.switches.pfc = true;
    struct netsim_network *network = open_network(&config);
    uint32_t count = 0;
    while (netsim_raw_new(network, &request, 5, 3) != NETSIM_NO_PACKET)
        count++;
    assert_int_equal(count, 64 - network->reserved_packets);
    assert_int_equal(network->reserved_packets, 32); /* half of them, where four a link are more */
    assert_true(netsim_packet_new(network) != NETSIM_NO_PACKET && !network->out_of_packets);
    netsim_world_close(&world);
}

static void others_than_raw_packets_are_just_dropped(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    struct netsim_raw raw;
    netsim_packet_drop(network, new_packet(network, 3));
    assert_int_equal(network->pool.alive, 0);
    assert_false(netsim_raw_next(network, &raw));
    netsim_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ended_packets_come_in_order),
        cmocka_unit_test(a_corrupted_packet_names_its_bit),
        cmocka_unit_test(packets_for_signals_are_left_alone),
        cmocka_unit_test(others_than_raw_packets_are_just_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
