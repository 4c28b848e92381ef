/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/engine/deadlock.h"

#include "netsim/engine/wire.h"
#include "support/small_network.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_without_a_move_for_long_are_a_deadlock),
        cmocka_unit_test(a_packet_on_a_wire_or_an_event_that_counts_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
