/*
 * test_flow_links.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/flowcontrol/flow_links.h"
#include "support/flow_effects.h"

/* ---- test bifrost link ----------------------------------------------------------------------------- */

#define SLOT_PS (10 * NETSIM_PS_PER_US)

static uint32_t event_of(uint32_t link, uint32_t kind)
{
    return world.net.network.ports[link].long_link * NETSIM_LONG_EVENTS + kind;
}

/* As the event queue does, which takes the event. */
static void expire(uint32_t link, uint32_t kind)
{
    uint32_t event = world.net.control.first_slot_event + event_of(link, kind);
    if (netsim_event_pending(&world.net.network.events, event))
        netsim_event_cancel(&world.net.network.events, event);
    netsim_bifrost_on_event(&world.net.control, event_of(link, kind));
}

static void slots_are_at_multiples_of_their_length_until_the_link_rests(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_BIFROST]);
    uint32_t link = open_way(&config);
    uint32_t number = world.net.network.ports[link].long_link;
    world.net.network.now_ps = SLOT_PS + 1;
    netsim_bifrost_on_arrival(&world.net.control, number, FRAME);
    struct netsim_effect timer = take_effect(1, NETSIM_EFFECT_TIMER);
    assert_true(timer.value == 2 * SLOT_PS);
    netsim_bifrost_on_arrival(&world.net.control, number, FRAME);
    assert_no_effect(); /* the slot is pending */
    /* Nothing is queued, so all of it is granted: no frame. F is short of what arrived, for a round trip. */
    uint32_t slots = 0;
    for (world.net.network.now_ps = timer.value; !world.net.control.long_links[number].idle; slots++) {
        expire(link, NETSIM_LONG_SLOT);
        if (!world.net.control.long_links[number].idle)
            world.net.network.now_ps = take_effect(1, NETSIM_EFFECT_TIMER).value;
        assert_true(slots < 100);
    }
    assert_no_effect();
    netsim_world_close(&world);
}

static void a_full_queue_pauses_for_two_slots(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_BIFROST]);
    uint32_t link = open_way(&config);
    world.net.network.ports[link].held_bytes[DATA] = UINT64_MAX / 4;
    expire(link, NETSIM_LONG_SLOT);
    uint64_t two_slots = 2 * (uint64_t)500000 / LH_PFC_QUANTUM_BYTES; /* 400 Gbit/s for 10 us */
    assert_signal(2, link, LH_NETSIM_PAUSE, two_slots);
    take_effect(1, NETSIM_EFFECT_TIMER);
    netsim_world_close(&world);
}

static void a_pause_ends_after_its_quanta_and_a_resume_ends_it_at_once(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_BIFROST]);
    uint32_t link = open_way(&config);
    const struct netsim_packet pause = signal_of(LH_NETSIM_PAUSE, 1000);
    const struct netsim_packet resume = signal_of(LH_NETSIM_RESUME, 0);
    netsim_bifrost_on_frame(&world.net.control, link, &pause);
    assert_true(take_effect(1, NETSIM_EFFECT_TIMER).value == 1000 * (uint64_t)1280); /* ps a quantum */
    assert_true(is_paused(link));
    expire(link, NETSIM_LONG_PAUSE_END);
    assert_int_equal(take_effect(1, NETSIM_EFFECT_KICK).number, link);
    assert_false(is_paused(link));
    netsim_bifrost_on_frame(&world.net.control, link, &pause);
    uint32_t end = take_effect(1, NETSIM_EFFECT_TIMER).number;
    netsim_bifrost_on_frame(&world.net.control, link, &resume);
    take_effect(1, NETSIM_EFFECT_KICK);
    assert_false(is_paused(link));
    assert_false(netsim_event_pending(&world.net.network.events, end));
    netsim_world_close(&world);
}

static void a_guard_without_frames_silences_the_near_end(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_GUARDED]);
    uint32_t link = open_way(&config);
    uint32_t number = world.net.network.ports[link].long_link;
    const struct netsim_packet resume = signal_of(LH_NETSIM_RESUME, 0);
    netsim_bifrost_on_arrival(&world.net.control, number, FRAME);
    take_effect(2, NETSIM_EFFECT_TIMER); /* the slot */
    assert_int_equal(take_effect(1, NETSIM_EFFECT_TIMER).number,
                     world.net.control.first_slot_event + event_of(link, NETSIM_LONG_GUARD));
    expire(link, NETSIM_LONG_GUARD);
    assert_true(is_paused(link));
    expire(link, NETSIM_LONG_PAUSE_END);
    assert_true(is_paused(link)); /* no frame yet */
    netsim_bifrost_on_frame(&world.net.control, link, &resume);
    take_effect(2, NETSIM_EFFECT_KICK);
    take_effect(1, NETSIM_EFFECT_TIMER); /* the guard again */
    assert_false(is_paused(link));
    netsim_world_close(&world);
}

static int run_bifrost_link(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_at_multiples_of_their_length_until_the_link_rests),
        cmocka_unit_test(a_full_queue_pauses_for_two_slots),
        cmocka_unit_test(a_pause_ends_after_its_quanta_and_a_resume_ends_it_at_once),
        cmocka_unit_test(a_guard_without_frames_silences_the_near_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test credit link ------------------------------------------------------------------------------ */

static struct netsim_credits *credits_of(uint32_t link)
{
    return &world.net.control.credits[link];
}

/* Sends full packets until there is no credit for another; returns their number. */
static uint32_t use_up(uint32_t link)
{
    const struct netsim_packet packet = data_packet();
    uint32_t sent = 0;
    for (; !is_paused(link); sent++)
        netsim_credits_on_sent(&world.net.control, link, &packet);
    return sent;
}

static void credits_are_used_up_and_a_limit_brings_more(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_CBFC]);
    uint32_t link = open_way(&config);
    uint64_t blocks = lh_cbfc_limit(&credits_of(link)->receiver);
    assert_int_equal(use_up(link), blocks / lh_cbfc_blocks(FRAME));
    assert_no_effect();
    netsim_credits_on_limit(&world.net.control, link, blocks); /* as before */
    assert_no_effect();
    assert_true(is_paused(link));
    netsim_credits_on_limit(&world.net.control, link, blocks + lh_cbfc_blocks(FRAME));
    assert_int_equal(take_effect(1, NETSIM_EFFECT_KICK).number, link);
    assert_int_equal(use_up(link), 1);
    netsim_world_close(&world);
}

static void a_packet_that_left_the_buffer_brings_its_credit_back(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_CBFC]);
    uint32_t link = open_way(&config);
    const struct netsim_packet packet = data_packet();
    uint64_t limit = lh_cbfc_limit(&credits_of(link)->receiver);
    netsim_credits_on_arrival(&world.net.control, link, &packet);
    assert_no_effect(); /* it occupies what it used */
    netsim_credits_on_departure(&world.net.control, link, &packet);
    assert_signal(1, link, LH_NETSIM_CREDIT, limit + lh_cbfc_blocks(FRAME));
    netsim_world_close(&world);
}

static void a_lost_packet_brings_its_credit_back(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_CBFC]);
    uint32_t link = open_way(&config);
    struct netsim_packet packet = data_packet();
    uint64_t limit = lh_cbfc_limit(&credits_of(link)->receiver);
    netsim_credits_on_lost(&world.net.control, link, &packet);
    assert_signal(1, link, LH_NETSIM_CREDIT, limit + lh_cbfc_blocks(FRAME));
    packet.flags = NETSIM_COPY;
    netsim_credits_on_lost(&world.net.control, link, &packet);
    packet = (struct netsim_packet){.wire_bytes = FRAME, .kind = LH_NETSIM_RAW};
    netsim_credits_on_lost(&world.net.control, link, &packet);
    assert_no_effect(); /* neither had any */
    netsim_world_close(&world);
}

static int run_credit_link(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credits_are_used_up_and_a_limit_brings_more),
        cmocka_unit_test(a_packet_that_left_the_buffer_brings_its_credit_back),
        cmocka_unit_test(a_lost_packet_brings_its_credit_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test pause link ------------------------------------------------------------------------------- */

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

static int run_pause_link(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_above_xoff_pauses_once_and_xon_resumes),
        cmocka_unit_test(the_near_end_pauses_and_a_resume_kicks_it),
        cmocka_unit_test(a_relay_passes_pauses_on),
        cmocka_unit_test(a_relay_with_a_threshold_pauses_by_its_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test refresh timers --------------------------------------------------------------------------- */

#define PERIOD_PS (50 * NETSIM_PS_PER_US)

static uint32_t open_refreshed(unsigned way, bool refreshed)
{
    struct netsim_config config = way_config(&ways[way]);
    config.longs.pfc_refresh_ps = refreshed ? PERIOD_PS : 0;
    config.longs.credit_refresh_ps = refreshed ? PERIOD_PS : 0;
    return open_way(&config);
}

static void a_signal_is_refreshed_until_it_ends(void **state)
{
    (void)state;
    uint32_t link = open_refreshed(WAY_PFC, true);
    struct netsim_flow_control *control = &world.net.control;
    assert_int_equal(netsim_refresh_quanta(control, link), LH_PFC_QUANTA_MAX);
    netsim_refresh_begin(control, link);
    struct netsim_effect timer = take_effect(1, NETSIM_EFFECT_TIMER);
    assert_true(timer.number == control->first_refresh_event + 2 * link && timer.value == PERIOD_PS);
    netsim_refresh_begin(control, link);
    assert_no_effect(); /* it runs */
    netsim_event_cancel(&world.net.network.events, timer.number);
    world.net.network.now_ps = timer.value;
    world.net.network.ports[link].stopped = 1u << DATA;
    netsim_refresh_on_expired(control, link);
    assert_signal(2, link, LH_NETSIM_PAUSE, LH_PFC_QUANTA_MAX);
    assert_true(take_effect(1, NETSIM_EFFECT_TIMER).value == 2 * PERIOD_PS);
    netsim_refresh_end(control, link);
    assert_false(netsim_event_pending(&world.net.network.events, timer.number));
    netsim_world_close(&world);
}

static void a_pause_ends_by_itself_after_its_quanta(void **state)
{
    (void)state;
    uint32_t link = open_refreshed(WAY_PFC, true);
    struct netsim_flow_control *control = &world.net.control;
    netsim_refresh_on_pause(control, link, 100);
    struct netsim_effect timer = take_effect(1, NETSIM_EFFECT_TIMER);
    assert_true(timer.number == control->first_refresh_event + 2 * link + 1 && timer.value == 128000);
    netsim_refresh_on_pause(control, link, 200); /* in its place */
    assert_true(take_effect(1, NETSIM_EFFECT_TIMER).value == 256000);
    netsim_refresh_on_pause(control, link, 0);
    assert_no_effect();
    assert_false(netsim_event_pending(&world.net.network.events, timer.number));
    netsim_world_close(&world);
}

static void a_limit_that_the_sender_has_is_not_refreshed(void **state)
{
    (void)state;
    uint32_t link = open_refreshed(WAY_CBFC, true);
    struct netsim_credits *credits = &world.net.control.credits[link];
    netsim_refresh_begin(&world.net.control, link);
    struct netsim_effect timer = take_effect(1, NETSIM_EFFECT_TIMER);
    netsim_event_cancel(&world.net.network.events, timer.number);
    world.net.network.now_ps = timer.value;
    credits->sender.limit_blocks--;
    netsim_refresh_on_expired(&world.net.control, link);
    assert_signal(2, link, LH_NETSIM_CREDIT, lh_cbfc_limit(&credits->receiver));
    timer = take_effect(1, NETSIM_EFFECT_TIMER);
    netsim_event_cancel(&world.net.network.events, timer.number);
    world.net.network.now_ps = timer.value;
    credits->sender.limit_blocks++;
    netsim_refresh_on_expired(&world.net.control, link);
    assert_no_effect();
    netsim_world_close(&world);
}

static void without_a_period_nothing_is_refreshed(void **state)
{
    (void)state;
    uint32_t link = open_refreshed(WAY_PFC, false);
    assert_int_equal(netsim_refresh_quanta(&world.net.control, link), NETSIM_HOLD);
    netsim_refresh_begin(&world.net.control, link);
    netsim_refresh_on_pause(&world.net.control, link, 100);
    netsim_refresh_end(&world.net.control, link);
    assert_no_effect();
    netsim_world_close(&world);
}

static int run_refresh_timers(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_is_refreshed_until_it_ends),
        cmocka_unit_test(a_pause_ends_by_itself_after_its_quanta),
        cmocka_unit_test(a_limit_that_the_sender_has_is_not_refreshed),
        cmocka_unit_test(without_a_period_nothing_is_refreshed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test signalling ------------------------------------------------------------------------------- */

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

static int run_signalling(void)
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

int main(void)
{
    return run_bifrost_link() + run_credit_link() + run_pause_link() + run_refresh_timers() +
           run_signalling();
}
