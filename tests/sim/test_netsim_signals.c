/*
 * Signals of a long link that get lost: what each way of flow control loses with them, and what it needs to
 * go on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "netsim/flowcontrol/link_rules.h"
#include "support/long_link.h"

#define US         NETSIM_PS_PER_US
#define BYTES_A_US 50000u /* 400 Gbit/s */
#define SLOT_BYTES 500000u
#define FLOW_BYTES 20000000u
#define STOP_US    333u
#define GO_US      1333u
#define REFRESH_US 40u

/* The receivers stop and go on; nothing else does. Timeouts are no end. Whether all flows were done. */
static bool stop_once(const struct netsim_config *config)
{
    struct netsim_config patient = *config;
    patient.transport.rto = 10;
    patient.transport.retries = 0;
    open_flows(&patient, FLOW_BYTES, HOSTS);
    assert_int_equal(netsim_run(&world.net, STOP_US * US, UINT64_MAX), 0);
    stop_receivers(HOSTS, true);
    assert_int_equal(netsim_run(&world.net, GO_US * US, UINT64_MAX), 0);
    stop_receivers(HOSTS, false);
    assert_int_equal(netsim_run(&world.net, UINT64_MAX, UINT64_MAX), 1);
    netsim_world_check(&world);
    return world.net.network.totals.flows_done == HOSTS;
}

static struct netsim_config muted(unsigned way, unsigned from_us, unsigned for_us)
{
    struct netsim_config config = way_config(&ways[way]);
    config.longs.mute_from_ps = from_us * US;
    config.longs.mute_for_ps = for_us * US;
    return config;
}

static void refresh(struct netsim_config *config)
{
    config->switches.pfc_refresh_ps = REFRESH_US * US;
    config->longs.pfc_refresh_ps = NETSIM_NEVER;
    config->longs.credit_refresh_ps = REFRESH_US * US;
}

static uint64_t dropped_bytes(void)
{
    return world.net.network.totals.dropped_packets * FRAME;
}

/* ---- pauses ------------------------------------------------------------------------------------------ */

/* The deep buffer is half full 200 us after the stop, when the pause is sent. From then on each microsecond
 * without one is too much, up to the last that it takes for a round trip. */
static void a_lost_pause_overflows(void **state)
{
    (void)state;
    struct netsim_config config = muted(WAY_PFC, STOP_US, 0);
    stop_once(&config);
    assert_int_equal(dropped_bytes(), 0);
    assert_int_equal(world.net.network.totals.signals_lost, 0);
    netsim_world_close(&world);
    config = muted(WAY_PFC, STOP_US + 150, 150);
    stop_once(&config);
    assert_true(world.net.network.totals.signals_lost > 0);
    /* Everything that was sent until the receivers went on, but for what there was room for. */
    assert_true(dropped_bytes() > (GO_US - STOP_US - 400) * BYTES_A_US * 9 / 10);
    netsim_world_close(&world);
}

/* The pause is sent 200 us after the stop, and 100 us are left of the outage. */
static void a_pause_that_is_sent_anew_overflows_until_it_is_heard(void **state)
{
    (void)state;
    struct netsim_config config = muted(WAY_PFC, STOP_US + 150, 150);
    refresh(&config);
    assert_true(stop_once(&config));
    assert_true(world.net.network.totals.signals_lost >= 100 / REFRESH_US);
    assert_in_range(dropped_bytes(), 90 * BYTES_A_US, (100 + REFRESH_US) * BYTES_A_US);
    netsim_world_close(&world);
}

/* What still pauses the upstream when the outage begins pauses it for the rest of its quanta, 83.9 us. */
static void quanta_outlive_a_short_outage(void **state)
{
    (void)state;
    struct netsim_config config = muted(WAY_PFC, STOP_US + 500, REFRESH_US);
    refresh(&config);
    assert_true(stop_once(&config));
    assert_true(world.net.network.totals.signals_lost > 0);
    assert_int_equal(dropped_bytes(), 0);
    netsim_world_close(&world);
}

/* ---- resumes and credits ----------------------------------------------------------------------------- */

static const unsigned sayers[] = {WAY_PFC, WAY_SWING, WAY_SWING_THRESHOLD, WAY_CBFC};

/* From before the receivers go on until everything that had come has left. */
static void a_lost_resume_is_for_ever_unless_it_is_said_anew(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sayers / sizeof sayers[0]; i++) {
        struct netsim_config config = muted(sayers[i], GO_US - 50, 1000);
        if (stop_once(&config))
            fail_msg("%s: it went on", ways[sayers[i]].name);
        assert_true(world.net.network.totals.signals_lost > 0 &&
                    world.net.network.totals.flows_failed == 0);
        netsim_world_close(&world);
        refresh(&config);
        if (!stop_once(&config))
            fail_msg("%s: it stopped", ways[sayers[i]].name);
        netsim_world_check_done(&world);
        netsim_world_check_end(&world);
        netsim_world_close(&world);
    }
}

/* No matter which: what is said anew comes through at last. */
static void what_is_said_anew_survives_any_loss(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sayers / sizeof sayers[0]; i++) {
        struct netsim_config config = way_config(&ways[sayers[i]]);
        config.longs.signal_loss = 0.9;
        config.longs.signal_burst = 10;
        refresh(&config);
        assert_true(stop_once(&config));
        assert_true(world.net.network.totals.signals_lost > 0);
        netsim_world_check_end(&world);
        netsim_world_close(&world);
    }
}

/* Credit that is lost is sent by nobody. */
static void lost_credits_overflow_nothing(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_CBFC]);
    config.longs.signal_loss = 0.5;
    refresh(&config);
    assert_true(stop_once(&config));
    assert_int_equal(world.net.network.totals.dropped_packets, 0);
    netsim_world_close(&world);
}

/* ---- Bifrost ----------------------------------------------------------------------------------------- */

/* All is full, and each slot is paused whole, and the one after it: b lost pauses let b - 1 slots through. */
static void bifrost_loses_a_slot_for_each_pause_but_one(void **state)
{
    (void)state;
    static const unsigned slots[] = {1, 3, 10, 40};
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        struct netsim_config config = muted(WAY_BIFROST, 705, 10 * slots[i]);
        assert_true(stop_once(&config));
        assert_int_equal(world.net.network.totals.signals_lost, slots[i]);
        uint64_t spare = (slots[i] + 24) * FRAME; /* which own_bytes has for leaks */
        uint64_t through = (slots[i] - 1) * SLOT_BYTES;
        assert_in_range(dropped_bytes(), through > spare ? through - spare : 0, through);
        netsim_world_close(&world);
    }
}

static void a_guard_lets_nothing_through(void **state)
{
    (void)state;
    static const double bursts[] = {1, 5, 50};
    for (size_t i = 0; i < sizeof bursts / sizeof bursts[0]; i++) {
        struct netsim_config config = way_config(&ways[WAY_BIFROST]);
        config.longs.signal_loss = 0.3;
        config.longs.signal_burst = bursts[i];
        assert_true(stop_once(&config));
        assert_true(world.net.network.totals.dropped_packets > 0);
        netsim_world_close(&world);
        config.longs.guard_slots = 1;
        assert_true(stop_once(&config));
        assert_true(world.net.network.totals.signals_lost > 0);
        assert_int_equal(world.net.network.totals.dropped_packets, 0);
        netsim_world_close(&world);
    }
}

/* ---- runs -------------------------------------------------------------------------------------------- */

static uint64_t hash_of_run(const struct netsim_config *config)
{
    open_flows(config, 8000000, 1);
    netsim_world_watch(&world);
    netsim_world_finish(&world);
    uint64_t hash = world.seen.hash;
    netsim_world_close(&world);
    return hash;
}

static void losses_that_do_not_come_change_nothing(void **state)
{
    (void)state;
    for (size_t w = 0; w < WAYS; w++) {
        struct netsim_config config = way_config(&ways[w]);
        uint64_t hash = hash_of_run(&config);
        config.longs.mute_from_ps = NETSIM_PS_PER_S;
        config.longs.mute_for_ps = NETSIM_PS_PER_S;
        assert_int_equal(hash_of_run(&config), hash);
        config.longs.signal_loss = 0.2;
        refresh(&config);
        hash = hash_of_run(&config);
        assert_int_equal(hash_of_run(&config), hash);
    }
}

/* Receivers that stop for ever: pauses, slots and timeouts go on, and the run ends. */
static void a_run_in_which_nothing_moves_ends(void **state)
{
    (void)state;
    for (size_t w = 0; w < WAYS; w++) {
        struct netsim_config config = way_config(&ways[w]);
        refresh(&config);
        config.transport.retries = 0;
        open_flows(&config, FLOW_BYTES, HOSTS);
        stop_receivers(HOSTS, true);
        assert_int_equal(netsim_run(&world.net, UINT64_MAX, UINT64_MAX), 1);
        assert_int_equal(world.net.network.totals.flows_done + world.net.network.totals.flows_failed, 0);
        netsim_world_close(&world);
    }
}

/* For a second nothing moves but the frames of slots of a microsecond, all of which are lost. Then the guard
 * hears one. */
static void a_long_outage_is_no_stall(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_GUARDED]);
    config.transport.retries = 0;
    config.longs.slot_ps = US;
    config.longs.mute_from_ps = 300 * US;
    config.longs.mute_for_ps = NETSIM_PS_PER_S;
    open_flows(&config, 20000000, HOSTS);
    assert_int_equal(netsim_run(&world.net, 10 * NETSIM_PS_PER_S, UINT64_MAX), 1);
    netsim_world_check_done(&world);
    assert_true(world.net.network.now_ps > NETSIM_PS_PER_S &&
                world.net.network.totals.signals_lost > 900000);
    netsim_world_close(&world);
}

static void losses_without_a_long_link_are_refused(void **state)
{
    (void)state;
    struct netsim_config config = netsim_world_config(NETSIM_TWO_HOSTS);
    config.longs.signal_loss = 0.1;
    netsim_world_open(&world, &config, &(struct netsim_flow_request){1000, 0, 0, 1}, 1, 1);
    assert_int_equal(netsim_control_check(&config, &world.graph), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "long.signal_loss is set, and no cable"));
    netsim_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_pause_overflows),
        cmocka_unit_test(a_pause_that_is_sent_anew_overflows_until_it_is_heard),
        cmocka_unit_test(quanta_outlive_a_short_outage),
        cmocka_unit_test(a_lost_resume_is_for_ever_unless_it_is_said_anew),
        cmocka_unit_test(what_is_said_anew_survives_any_loss),
        cmocka_unit_test(lost_credits_overflow_nothing),
        cmocka_unit_test(bifrost_loses_a_slot_for_each_pause_but_one),
        cmocka_unit_test(a_guard_lets_nothing_through),
        cmocka_unit_test(losses_that_do_not_come_change_nothing),
        cmocka_unit_test(a_run_in_which_nothing_moves_ends),
        cmocka_unit_test(a_long_outage_is_no_stall),
        cmocka_unit_test(losses_without_a_long_link_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
