/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/flowcontrol/pause_link.h"

#include "support/flow_effects.h"

static void a_queue_above_xoff_pauses_once_and_xon_resumes(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_PFC]);
    uint32_t link = open_way(&config);
    struct netsim_port *port = &world.net.network.ports[link];
    const struct lh_pfc_thresholds *pfc = &world.net.network.more[link].pfc;
    port->held_bytes[DATA] = pfc->xoff_bytes;
    netsim_pfc_update(&world.net.control, link);
    assert_no_effect();
    port->held_bytes[DATA]++;
    netsim_pfc_update(&world.net.control, link);
    assert_signal(1, link, LH_NETSIM_PAUSE, NETSIM_HOLD);
    netsim_pfc_update(&world.net.control, link);
    assert_no_effect();
    port->held_bytes[DATA] = pfc->xon_bytes;
    netsim_pfc_update(&world.net.control, link);
    assert_signal(1, link, LH_NETSIM_RESUME, 0);
    netsim_world_close(&world);
}

static void the_near_end_pauses_and_a_resume_kicks_it(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_PFC]);
    uint32_t link = open_way(&config);
    const struct netsim_packet pause = signal_of(LH_NETSIM_PAUSE, NETSIM_HOLD);
    const struct netsim_packet resume = signal_of(LH_NETSIM_RESUME, 0);
    netsim_pause_on_frame(&world.net.control, link, &pause);
    assert_no_effect();
    assert_true(is_paused(link));
    assert_int_equal(world.net.network.more[link].pauses, 1);
    netsim_pause_on_frame(&world.net.control, link, &resume);
    assert_int_equal(take_effect(1, NETSIM_EFFECT_KICK).number, link);
    assert_false(is_paused(link));
    netsim_pause_on_frame(&world.net.control, link, &pause);
    netsim_pause_on_expired(&world.net.control, link);
    assert_int_equal(take_effect(1, NETSIM_EFFECT_KICK).number, link);
    assert_false(is_paused(link));
    netsim_world_close(&world);
}

/* Each pauses who sends to it, when what it sends to pauses it. */
static void a_relay_passes_pauses_on(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_SWING]);
    uint32_t link = open_way(&config);
    uint32_t relay = world.net.network.ports[link].owner;
    uint32_t far_relay = world.net.network.ports[link].far;
    uint32_t site = netsim_world_link(&world, world.graph.hosts, relay);
    uint32_t out = netsim_world_link(&world, far_relay, world.graph.hosts + 1);
    const struct netsim_packet pause = signal_of(LH_NETSIM_PAUSE, NETSIM_HOLD);
    const struct netsim_packet resume = signal_of(LH_NETSIM_RESUME, 0);
    netsim_pause_on_frame(&world.net.control, out, &pause);
    assert_signal(1, link, LH_NETSIM_PAUSE, NETSIM_HOLD);
    netsim_pause_on_frame(&world.net.control, link, &pause);
    assert_signal(1, site, LH_NETSIM_PAUSE, NETSIM_HOLD);
    netsim_pause_on_frame(&world.net.control, out, &resume);
    assert_int_equal(take_effect(2, NETSIM_EFFECT_KICK).number, out);
    assert_signal(1, link, LH_NETSIM_RESUME, 0);
    world.net.network.ports[link].held_bytes[DATA] = UINT64_MAX / 4;
    netsim_relay_update(&world.net.control, link); /* by its queue only when it does not forward */
    assert_no_effect();
    netsim_world_close(&world);
}

static void a_relay_with_a_threshold_pauses_by_its_queue(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_SWING_THRESHOLD]);
    uint32_t link = open_way(&config);
    struct netsim_port *port = &world.net.network.ports[link];
    port->held_bytes[DATA] = config.longs.xoff_bytes + 1;
    netsim_relay_update(&world.net.control, link);
    assert_signal(1, link, LH_NETSIM_PAUSE, NETSIM_HOLD);
    assert_int_equal(port->stopped, 1u << DATA);
    port->held_bytes[DATA] = 0;
    netsim_relay_update(&world.net.control, link);
    assert_signal(1, link, LH_NETSIM_RESUME, 0);
    assert_int_equal(port->stopped, 0);
    netsim_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_above_xoff_pauses_once_and_xon_resumes),
        cmocka_unit_test(the_near_end_pauses_and_a_resume_kicks_it),
        cmocka_unit_test(a_relay_passes_pauses_on),
        cmocka_unit_test(a_relay_with_a_threshold_pauses_by_its_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
