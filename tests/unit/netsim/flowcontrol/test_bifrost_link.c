/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/flowcontrol/bifrost_link.h"

#include "support/flow_effects.h"

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
    for (world.net.network.now_ps = timer.value; !world.net.control.long_links[number].rests; slots++) {
        expire(link, NETSIM_LONG_SLOT);
        if (!world.net.control.long_links[number].rests)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_at_multiples_of_their_length_until_the_link_rests),
        cmocka_unit_test(a_full_queue_pauses_for_two_slots),
        cmocka_unit_test(a_pause_ends_after_its_quanta_and_a_resume_ends_it_at_once),
        cmocka_unit_test(a_guard_without_frames_silences_the_near_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
