/*
 * test_disturbance.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/error.h"
#include "netsim/engine/disturbance.h"
#include "netsim/engine/network.h"
#include "netsim/engine/switch.h"
#include "support/small_network.h"

/* ---- test deadlock --------------------------------------------------------------------------------- */

#define EVENTS ((uint64_t)1 << 20)

/* That many events and that much time later. */
static bool asked_after(struct netsim_network *network, struct netsim_deadlock *deadlock, uint64_t events,
                        netsim_time later_ps)
{
    network->totals.events += events;
    network->now_ps += later_ps;
    return netsim_deadlock_found(deadlock, network);
}

static void events_without_a_move_for_long_are_a_deadlock(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    struct netsim_deadlock deadlock = {0};
    network->ports[0].sent_packets = 10;
    assert_false(asked_after(network, &deadlock, EVENTS, 0)); /* ten moves */
    assert_false(asked_after(network, &deadlock, EVENTS - 1, NETSIM_PS_PER_S));
    assert_true(asked_after(network, &deadlock, 1, 0));
    network->ports[0].sent_packets++;
    assert_false(asked_after(network, &deadlock, 0, 0));
    network->ports[0].sent_packets++;
    network->urgent_packets++;                                                   /* a signal is none */
    assert_false(asked_after(network, &deadlock, EVENTS, 2 * NETSIM_PS_PER_US)); /* an answer may come */
    assert_true(asked_after(network, &deadlock, 0, 1));
    netsim_world_close(&world);
}

static void a_packet_on_a_wire_or_an_event_that_counts_is_none(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    uint32_t timer = world.net.transport.start_event;
    struct netsim_deadlock deadlock = {.first_event = timer, .end_event = timer + 1};
    netsim_event_schedule(&network->events, timer, NETSIM_PS_PER_S);
    assert_false(asked_after(network, &deadlock, EVENTS, NETSIM_PS_PER_MS));
    netsim_event_cancel(&network->events, timer);
    uint32_t packet = new_packet(network, 3);
    network->pool.packets[packet].arrive_ps = NETSIM_PS_PER_S;
    netsim_wire_append(network, 0, packet);
    assert_false(asked_after(network, &deadlock, EVENTS, NETSIM_PS_PER_MS));
    network->pool.packets[packet].kind = LH_NETSIM_PAUSE;
    assert_true(asked_after(network, &deadlock, EVENTS, NETSIM_PS_PER_MS));
    deadlock = (struct netsim_deadlock){.mute_until_ps = NETSIM_PS_PER_S};
    assert_false(asked_after(network, &deadlock, EVENTS, NETSIM_PS_PER_MS));
    netsim_world_close(&world);
}

static int run_deadlock(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_without_a_move_for_long_are_a_deadlock),
        cmocka_unit_test(a_packet_on_a_wire_or_an_event_that_counts_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test disturbance ------------------------------------------------------------------------------ */

/* The events of a process are handled here, so that nothing else moves. */
static struct netsim_disturbed next(struct netsim_disturbance *disturbance)
{
    netsim_time at_ps = 0;
    uint32_t event = netsim_event_next(&disturbance->network->events, NETSIM_TIME_MAX, &at_ps);
    assert_int_not_equal(event, NETSIM_NO_EVENT);
    disturbance->network->now_ps = at_ps;
    return netsim_disturbance_on_event(disturbance, event);
}

static void nothing_happens_by_default(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    struct netsim_network *network = open_network(&config);
    assert_int_equal(world.net.disturbance.stragglers, 0);
    assert_int_equal(world.net.disturbance.cables_count, 0);
    for (uint32_t i = 0; i < 2; i++)
        assert_false(netsim_event_pending(&network->events, world.net.disturbance.first_event + i));
    netsim_world_close(&world);
}

/* A ratio above 0 makes at least one; each is another host. */
static void stragglers_are_a_share_of_the_hosts(void **state)
{
    (void)state;
    static const double shares[] = {1e-9, 0.5, 1};
    for (unsigned i = 0; i < 3; i++) {
        struct netsim_config config = small_config();
        config.disturb.stragglers = shares[i];
        struct netsim_network *network = open_network(&config);
        uint32_t hosts = network->hosts_count;
        uint32_t expected[] = {1, hosts / 2, hosts};
        assert_int_equal(world.net.disturbance.stragglers, expected[i]);
        uint64_t seen = 0;
        for (uint32_t host = 0; host < hosts; host++)
            seen |= UINT64_C(1) << world.net.disturbance.hosts[host];
        assert_int_equal(seen, (UINT64_C(1) << hosts) - 1);
        netsim_world_close(&world);
    }
}

static void a_straggler_sends_nothing_while_it_pauses(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    config.disturb = (struct netsim_disturb_config){
        .stragglers = 1e-9, .pause_ps = 7000, .pause_every_ps = NETSIM_PS_PER_US};
    struct netsim_network *network = open_network(&config);
    struct netsim_disturbance *disturbance = &world.net.disturbance;
    struct netsim_port *port = &network->ports[disturbance->hosts[0]];
    double apart_ps = 0;
    netsim_time ended_ps = 0;
    port->ready = 0x48;
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(netsim_queue_ready(port), 0x48);
        struct netsim_disturbed done = next(disturbance);
        apart_ps += (double)(network->now_ps - ended_ps);
        assert_int_equal(netsim_queue_ready(port), 0);
        assert_int_equal(done.kick, NETSIM_NO_PORT);
        assert_int_equal(done.until_ps, network->now_ps + 7000);
        ended_ps = done.until_ps;
        done = next(disturbance);
        assert_int_equal(network->now_ps, ended_ps);
        assert_int_equal(done.kick, disturbance->hosts[0]);
    }
    assert_true(apart_ps > 0.9e9 && apart_ps < 1.1e9); /* of 1000 */
    netsim_world_close(&world);
}

static void a_burst_goes_from_a_host_to_another(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    config.disturb.burst_bytes = 10 * FULL + 1;
    config.disturb.burst_every_ps = NETSIM_PS_PER_US;
    struct netsim_network *network = open_network(&config);
    struct netsim_disturbance *disturbance = &world.net.disturbance;
    uint64_t sources = 0, destinations = 0;
    for (unsigned i = 0; i < 1000; i++) {
        struct netsim_disturbed burst = next(disturbance);
        assert_int_equal(burst.packets, 11);
        assert_true(burst.source < network->hosts_count && burst.destination < network->hosts_count);
        assert_int_not_equal(burst.source, burst.destination);
        sources |= UINT64_C(1) << burst.source;
        destinations |= UINT64_C(1) << burst.destination;
        uint32_t packet = netsim_disturbance_packet(disturbance, &burst);
        const struct netsim_packet *made = &network->pool.packets[packet];
        assert_true(made->flow == NETSIM_NO_FLOW && made->source == burst.source &&
                    made->destination == burst.destination && made->wire_bytes == FULL);
    }
    assert_int_equal(sources, (UINT64_C(1) << network->hosts_count) - 1);
    assert_int_equal(destinations, sources);
    assert_in_range(network->now_ps, 900 * NETSIM_PS_PER_US, 1100 * NETSIM_PS_PER_US);
    netsim_world_close(&world);
}

/* Only those between switches, both ways, until the end and not longer. */
static void a_cable_that_is_down_loses_everything(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    config.disturb.flap_ps = 5000;
    config.disturb.flap_every_ps = NETSIM_PS_PER_US;
    struct netsim_network *network = open_network(&config);
    uint32_t links[] = {netsim_world_link(&world, LEFT, RIGHT), netsim_world_link(&world, RIGHT, LEFT)};
    struct netsim_disturbed done = next(&world.net.disturbance);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(network->more[links[i]].down_until_ps, done.until_ps);
        network->now_ps = done.until_ps - 1;
        assert_false(netsim_launch(network, links[i], new_packet(network, 3)));
        assert_true(netsim_launch(network, 0, new_packet(network, 3)));
        network->now_ps = done.until_ps;
        assert_true(netsim_launch(network, links[i], new_packet(network, 3)));
    }
    assert_int_equal(network->totals.lost_packets, 2);
    netsim_world_close(&world);
}

static void refuses_what_would_never_end(void **state)
{
    (void)state;
    struct netsim_config config = small_config();
    config.disturb.flap_ps = 1;
    assert_int_equal(netsim_disturbance_check(&config), 0);
    config.transport.ack_bytes = 0;
    assert_int_equal(netsim_disturbance_check(&config), -LH_EINVAL);
    config.transport.kind = NETSIM_XP;
    assert_int_equal(netsim_disturbance_check(&config), 0);
}

static int run_disturbance(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_happens_by_default),
        cmocka_unit_test(stragglers_are_a_share_of_the_hosts),
        cmocka_unit_test(a_straggler_sends_nothing_while_it_pauses),
        cmocka_unit_test(a_burst_goes_from_a_host_to_another),
        cmocka_unit_test(a_cable_that_is_down_loses_everything),
        cmocka_unit_test(refuses_what_would_never_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_deadlock() + run_disturbance();
}
