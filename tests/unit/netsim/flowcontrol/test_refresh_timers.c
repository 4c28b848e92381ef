/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/flowcontrol/refresh_timers.h"

#include "support/flow_effects.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_is_refreshed_until_it_ends),
        cmocka_unit_test(a_pause_ends_by_itself_after_its_quanta),
        cmocka_unit_test(a_limit_that_the_sender_has_is_not_refreshed),
        cmocka_unit_test(without_a_period_nothing_is_refreshed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
