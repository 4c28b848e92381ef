/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/flowcontrol/signalling.h"

#include "support/flow_effects.h"

static void a_corrupted_signal_is_lost(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_PFC]);
    uint32_t link = open_way(&config);
    struct netsim_packet pause = signal_of(LH_NETSIM_PAUSE, NETSIM_HOLD);
    uint32_t back = world.net.network.ports[link].reverse;
    pause.flags = NETSIM_CORRUPTED;
    netsim_signalling_on_signal(&world.net.control, back, &pause);
    assert_false(is_paused(link));
    assert_int_equal(world.net.network.totals.signals_lost, 1);
    pause.flags = 0;
    netsim_signalling_on_signal(&world.net.control, back, &pause);
    assert_true(is_paused(link));
    netsim_world_close(&world);
}

/* An arrival that the switch reports, by each way; `expects`: what it asks for. */
static void an_arrival_reaches_the_flow_control_of_its_link(void **state)
{
    (void)state;
    static const enum netsim_effect_kind expects[WAYS] = {[WAY_PFC] = NETSIM_EFFECT_SIGNAL,
                                                          [WAY_BIFROST] = NETSIM_EFFECT_TIMER,
                                                          [WAY_PRINTED] = NETSIM_EFFECT_TIMER,
                                                          [WAY_CBFC] = NETSIM_EFFECT_SIGNAL,
                                                          [WAY_SWING_THRESHOLD] = NETSIM_EFFECT_SIGNAL};
    for (unsigned way = 0; way < WAYS; way++) {
        if (way == WAY_GUARDED || way == WAY_SWING)
            continue; /* two timers; a relay that forwards asks for nothing */
        struct netsim_config config = way_config(&ways[way]);
        uint32_t link = open_way(&config);
        const struct netsim_packet packet = data_packet();
        world.net.network.ports[link].held_bytes[DATA] = BDP * 2;
        netsim_signalling_on_arrival(&world.net.control, link, &packet);
        if (way == WAY_CBFC) {
            assert_no_effect();
            netsim_signalling_on_departure(&world.net.control, link, &packet);
        }
        take_effect(1, expects[way]);
        netsim_world_close(&world);
    }
}

static void a_refused_packet_is_not_expected_any_more(void **state)
{
    (void)state;
    struct netsim_packet packet = data_packet();
    struct netsim_config config = way_config(&ways[WAY_BIFROST]);
    uint32_t link = open_way(&config);
    const struct netsim_long_link *state_of =
        &world.net.control.long_links[world.net.network.ports[link].long_link];
    netsim_signalling_on_refused(&world.net.control, link, &packet);
    assert_int_equal(state_of->received_bytes, FRAME);
    packet.priority = DATA + 1;
    netsim_signalling_on_refused(&world.net.control, link, &packet);
    assert_int_equal(state_of->received_bytes, FRAME);
    netsim_world_close(&world);
    config = way_config(&ways[WAY_CBFC]);
    link = open_way(&config);
    packet.priority = DATA;
    netsim_signalling_on_refused(&world.net.control, link, &packet);
    take_effect(1, NETSIM_EFFECT_SIGNAL);
    netsim_world_close(&world);
}

static void a_signal_is_a_small_packet_and_counted(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_PFC]);
    open_way(&config);
    struct netsim_network *network = &world.net.network;
    uint32_t number = netsim_signalling_packet(&world.net.control, LH_NETSIM_PAUSE, 77);
    const struct netsim_packet *packet = &network->pool.packets[number];
    assert_true(packet->kind == LH_NETSIM_PAUSE && packet->cookie == 77 && packet->priority == DATA);
    assert_int_equal(packet->wire_bytes, LH_PFC_FRAME_BYTES);
    netsim_signalling_packet(&world.net.control, LH_NETSIM_RESUME, 0);
    netsim_signalling_packet(&world.net.control, LH_NETSIM_CREDIT, 5);
    assert_true(network->totals.pauses == 1 && network->totals.resumes == 1 &&
                network->totals.credits == 1);
    network->pool.fresh = network->pool.capacity;
    assert_int_equal(netsim_signalling_packet(&world.net.control, LH_NETSIM_PAUSE, 77), NETSIM_NO_PACKET);
    assert_true(network->out_of_packets && network->totals.pauses == 1);
    netsim_world_close(&world);
}

static void events_reach_their_timer(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_PFC]);
    config.longs.pfc_refresh_ps = 50 * NETSIM_PS_PER_US;
    uint32_t link = open_way(&config);
    uint32_t first = world.net.control.first_refresh_event;
    const struct netsim_packet pause = signal_of(LH_NETSIM_PAUSE, 100);
    netsim_signalling_on_signal(&world.net.control, world.net.network.ports[link].reverse, &pause);
    take_effect(1, NETSIM_EFFECT_TIMER);
    netsim_event_cancel(&world.net.network.events, first + 2 * link + 1);
    netsim_signalling_on_event(&world.net.control, first + 2 * link + 1); /* the end of the pause */
    take_effect(1, NETSIM_EFFECT_KICK);
    world.net.network.ports[link].held_bytes[DATA] = BDP * 2;
    netsim_signalling_on_arrival(&world.net.control, link, &pause);
    take_effect(2, NETSIM_EFFECT_SIGNAL);
    world.net.network.now_ps = take_effect(1, NETSIM_EFFECT_TIMER).value;
    netsim_event_cancel(&world.net.network.events, first + 2 * link);
    netsim_signalling_on_event(&world.net.control, first + 2 * link); /* its refresh */
    take_effect(2, NETSIM_EFFECT_SIGNAL);
    netsim_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_corrupted_signal_is_lost),
        cmocka_unit_test(an_arrival_reaches_the_flow_control_of_its_link),
        cmocka_unit_test(a_refused_packet_is_not_expected_any_more),
        cmocka_unit_test(a_signal_is_a_small_packet_and_counted),
        cmocka_unit_test(events_reach_their_timer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
