/*
 * Pauses that end by themselves and are sent anew do what a pause until the resume does, as long as no frame
 * is lost; and a link that is not stopped sends none.
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

#define PERIOD_PS (40 * NETSIM_PS_PER_US)

static const unsigned pausing[] = {WAY_PFC, WAY_SWING, WAY_SWING_THRESHOLD};

static struct netsim_config refreshed(const struct way *way)
{
    struct netsim_config config = way_config(way);
    config.switches.pfc_refresh_ps = PERIOD_PS;
    config.longs.pfc_refresh_ps = NETSIM_NEVER; /* the same */
    return config;
}

static void the_same_happens_at_the_same_times(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pausing / sizeof pausing[0]; i++) {
        const struct way *way = &ways[pausing[i]];
        struct netsim_config config = way_config(way);
        stop_and_go(&config, 20000000);
        netsim_time held_ps = world.net.network.now_ps;
        uint64_t held_pauses = world.net.network.totals.pauses;
        uint64_t held_resumes = world.net.network.totals.resumes;
        netsim_world_close(&world);
        config = refreshed(way);
        stop_and_go(&config, 20000000);
        netsim_world_check(&world);
        netsim_world_check_done(&world);
        assert_int_equal(world.net.network.totals.dropped_packets, 0);
        assert_true(long_link()->held_max_bytes <= way->needs_bytes);
        assert_true(world.net.network.totals.pauses > held_pauses);
        assert_true(world.net.network.totals.resumes > held_resumes / 2);
        /* The frames themselves delay a packet or two. */
        assert_true(world.net.network.now_ps < held_ps + NETSIM_PS_PER_US &&
                    held_ps < world.net.network.now_ps + NETSIM_PS_PER_US);
        netsim_world_close(&world);
    }
}

static void a_link_that_is_not_stopped_has_no_timer(void **state)
{
    (void)state;
    struct netsim_config config = refreshed(&ways[WAY_PFC]);
    open_flows(&config, 1000000, HOSTS);
    netsim_world_finish(&world);
    assert_int_equal(world.net.network.totals.pauses, 0);
    for (uint32_t e = world.net.control.first_refresh_event; e < world.net.network.events.events_count; e++)
        assert_false(netsim_event_pending(&world.net.network.events, e));
    uint64_t events = world.net.network.totals.events;
    netsim_world_close(&world);
    config = way_config(&ways[WAY_PFC]);
    open_flows(&config, 1000000, HOSTS);
    netsim_world_finish(&world);
    assert_int_equal(world.net.network.totals.events, events);
    netsim_world_close(&world);
}

/* One stop of 666 us: the pause, and one more each 40 us. */
static void a_stop_is_said_once_in_a_period(void **state)
{
    (void)state;
    struct netsim_config config = refreshed(&ways[WAY_PFC]);
    config.switches.pfc_refresh_ps = 0;
    config.longs.pfc_refresh_ps = PERIOD_PS;
    open_flows(&config, 20000000, HOSTS);
    assert_int_equal(netsim_run(&world.net, 333 * NETSIM_PS_PER_US, UINT64_MAX), 0);
    stop_receivers(HOSTS, true);
    assert_int_equal(netsim_run(&world.net, 999 * NETSIM_PS_PER_US, UINT64_MAX), 0);
    uint32_t far = long_link()->far;
    uint32_t link = world.net.network.ports[netsim_world_link(&world, far, long_link()->owner)].reverse;
    uint64_t pauses = world.net.network.more[link].pauses;
    /* It was full after 10 MB came at 50 bytes a nanosecond; the last 100 us are on their way. */
    assert_in_range(pauses, (666 - 2 * 200 - 100) / 40, 666 / 40);
    stop_receivers(HOSTS, false);
    netsim_world_finish(&world);
    netsim_world_check_done(&world);
    netsim_world_close(&world);
}

static void refused(netsim_time switch_ps, netsim_time long_ps, const char *key, const char *remedy)
{
    struct netsim_config config = way_config(&ways[WAY_PFC]);
    open_flows(&config, 1000, HOSTS);
    config.switches.pfc_refresh_ps = switch_ps;
    config.longs.pfc_refresh_ps = long_ps;
    assert_int_equal(netsim_control_check(&config, &world.graph), -LH_ERANGE);
    assert_non_null(strstr(lh_last_error(), key));
    assert_non_null(strstr(lh_last_error(), remedy));
    netsim_world_close(&world);
}

/* 65,535 quanta are 83.9 us at 400 Gbit/s, 335.5 us at 100. */
static void a_period_beyond_the_quanta_is_refused(void **state)
{
    (void)state;
    refused(0, 84 * NETSIM_PS_PER_US, "long.pfc_refresh 84000 ns", "shorten");
    refused(0, NETSIM_PS_PER_NS, "long.pfc_refresh 1 ns", "lengthen");
    refused(336 * NETSIM_PS_PER_US, 0, "switch.pfc_refresh 336000 ns", "shorten");
    refused(100 * NETSIM_PS_PER_US, NETSIM_NEVER, "switch.pfc_refresh 100000 ns", "long.pfc_refresh");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_happens_at_the_same_times),
        cmocka_unit_test(a_link_that_is_not_stopped_has_no_timer),
        cmocka_unit_test(a_stop_is_said_once_in_a_period),
        cmocka_unit_test(a_period_beyond_the_quanta_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
