/*
 * Flows over links that lose, damage, double, delay and reorder: all of them end, each fault happens as often
 * as it should, and little more is repeated than was lost. Timers and windows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "support/netsim_world.h"

#define PACKETS 20000u

static struct netsim_config faulty_config(struct lh_link_spec faults)
{
    struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
    config.topology.faults = faults;
    config.transport.window_bytes = NETSIM_WINDOW_BDP;
    config.workload.kind = NETSIM_FLOWS_FILE;
    return config;
}

/* One flow through the faulty middle. */
static void faulty_run(struct netsim_world *world, const struct netsim_config *config)
{
    const struct netsim_flow_request flow = {(uint64_t)PACKETS * 4096 - 1000, 0, 0, 4};
    netsim_world_open(world, config, &flow, 1, 21);
    netsim_world_watch(world);
    netsim_world_finish(world);
    netsim_world_check_end(world);
    netsim_world_check_done(world);
}

/* Whether a count of so many draws is within 4.5 standard deviations. */
static bool is_about(uint64_t count, uint64_t draws, double chance, double spread)
{
    double expected = (double)draws * chance;
    return fabs((double)count - expected) <= 4.5 * spread * sqrt(expected * (1 - chance));
}

/* How many packets entered the faulty middle: all of the data, and the acknowledgements. */
static uint64_t middle_packets(const struct netsim_world *world)
{
    return world->net.network.totals.data_packets + world->net.network.totals.ack_packets;
}

static void lost_ones_are_repeated(void **state)
{
    (void)state;
    static const double losses[] = {1e-3, 1e-2, 5e-2};
    static struct netsim_world world;
    for (size_t i = 0; i < 3; i++) {
        struct netsim_config config = faulty_config((struct lh_link_spec){.loss = losses[i]});
        faulty_run(&world, &config);
        const struct lh_netsim_totals *totals = &world.net.network.totals;
        uint64_t data_lost = totals->data_packets - totals->ack_packets;
        assert_true(is_about(totals->lost_packets, middle_packets(&world), losses[i], 1));
        assert_true(totals->repeated_packets >= data_lost);
        if (losses[i] <= 2e-3)
            assert_true(totals->repeated_packets == data_lost && totals->timeouts == 0);
        /* What is lost twice takes a timeout, and that repeats a window. */
        assert_true(totals->repeated_packets <= data_lost + data_lost / 2);
        assert_true(totals->timeouts <= 3 * (uint64_t)((double)data_lost * losses[i] + 1));
        netsim_world_close(&world);
    }
}

static void bursts_too(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = faulty_config((struct lh_link_spec){.loss = 0.02, .burst_packets = 8});
    faulty_run(&world, &config);
    const struct lh_netsim_totals *totals = &world.net.network.totals;
    /* A burst is one draw of about 8 packets, more or less. */
    assert_true(is_about(totals->lost_packets, middle_packets(&world), 0.02, sqrt(2 * 8 - 1)));
    assert_true(totals->repeated_packets >= totals->data_packets - totals->ack_packets);
    assert_true(totals->repeated_packets <= 2 * (totals->data_packets - totals->ack_packets));
    netsim_world_close(&world);
}

static void damaged_ones_are_repeated(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = faulty_config((struct lh_link_spec){.corrupt = 0.01});
    faulty_run(&world, &config);
    const struct lh_netsim_totals *totals = &world.net.network.totals;
    assert_true(totals->lost_packets == 0 && totals->dropped_packets == 0);
    assert_true(is_about(totals->corrupted_packets, middle_packets(&world), 0.01, 1));
    assert_true(totals->repeated_packets >= totals->data_packets - totals->ack_packets);
    netsim_world_close(&world);
}

static void doubled_ones_count_once(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = faulty_config((struct lh_link_spec){.duplicate = 0.05});
    faulty_run(&world, &config);
    const struct lh_netsim_totals *totals = &world.net.network.totals;
    assert_true(totals->repeated_packets == 0 && totals->ack_packets > PACKETS);
    assert_true(is_about(totals->duplicated_packets, middle_packets(&world), 0.05, 1));
    netsim_world_close(&world);
}

/* Jitter of three packet times lets at most two packets overtake one. */
static void overtaking_within_reason_repeats_nothing(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = faulty_config((struct lh_link_spec){.jitter_ns = 1000});
    faulty_run(&world, &config);
    assert_int_equal(world.net.network.totals.repeated_packets, 0);
    netsim_world_close(&world);

    config.transport.reorder_packets = 0;
    faulty_run(&world, &config);
    assert_true(world.net.network.totals.repeated_packets > 1000);
    netsim_world_close(&world);

    config = faulty_config((struct lh_link_spec){.jitter_ns = 2000, .reorder = 0.01});
    config.transport.reorder_packets = 1000000;
    config.transport.rto = 10;
    faulty_run(&world, &config);
    assert_int_equal(world.net.network.totals.repeated_packets, 0);
    netsim_world_close(&world);
}

/* ---- time ---- */

/* The first wait is `rto` round trips, or rto_min when that is longer; each further one twice as long. */
static void check_timeouts(netsim_time rto_min_ps)
{
    static struct netsim_world world;
    struct netsim_config config = faulty_config((struct lh_link_spec){.loss = 1});
    config.transport.rto_min_ps = rto_min_ps;
    const struct netsim_flow_request flow = {4096, 12345, 0, 4};
    netsim_world_open(&world, &config, &flow, 1, 21);
    assert_int_equal(netsim_run(&world.net, 12345, UINT64_MAX), 0);
    netsim_time wait_ps =
        3 * world.net.transport.flows[0].ideal_ps; /* of one packet, that is its round trip */
    netsim_time due_ps = 12345;
    if (wait_ps < rto_min_ps)
        wait_ps = rto_min_ps;
    for (uint64_t timeouts = 0; timeouts < 12; timeouts++) {
        due_ps += wait_ps;
        assert_int_equal(netsim_run(&world.net, due_ps - 1, UINT64_MAX), 0);
        assert_true(world.net.network.totals.timeouts == timeouts &&
                    world.net.network.totals.repeated_packets == timeouts);
        assert_int_equal(netsim_run(&world.net, due_ps, UINT64_MAX), 0);
        assert_true(world.net.network.totals.timeouts == timeouts + 1);
        assert_true(world.net.network.totals.repeated_packets == timeouts + 1);
        wait_ps *= 2;
    }
    /* The link heals: the one that was just repeated is still before it, and gets through. */
    for (uint32_t p = 0; p < world.net.network.ports_count; p++) {
        if (world.net.network.more[p].faults != NULL)
            world.net.network.more[p].faults->spec.loss = 0;
    }
    netsim_world_finish(&world);
    netsim_world_check_end(&world);
    netsim_world_check_done(&world);
    assert_true(world.net.transport.flows[0].done_ps == due_ps + world.net.transport.flows[0].ideal_ps);
    netsim_world_close(&world);
}

static void a_timeout_is_exact_and_backs_off(void **state)
{
    (void)state;
    check_timeouts(0);
    check_timeouts(NETSIM_PS_PER_US);       /* shorter than the round trips */
    check_timeouts(1234567890 + 320000000); /* longer */
}

/* On a link that carries nothing. */
static uint64_t timeouts_in(netsim_time first_ps, netsim_time span_ps)
{
    static struct netsim_world world;
    struct netsim_config config = faulty_config((struct lh_link_spec){.loss = 1});
    const struct netsim_flow_request flow = {4096, 0, 0, 4};
    config.transport.rto_min_ps = first_ps;
    netsim_world_open(&world, &config, &flow, 1, 21);
    assert_int_equal(netsim_run(&world.net, span_ps, UINT64_MAX), 0);
    uint64_t count = world.net.network.totals.timeouts;
    netsim_world_close(&world);
    return count;
}

static void a_wait_is_doubled_up_to_a_minute(void **state)
{
    (void)state;
    const netsim_time s = NETSIM_PS_PER_S;
    assert_int_equal(timeouts_in(s, 62 * s), 5); /* 1, 3, 7, 15, 31 */
    assert_int_equal(timeouts_in(s, 64 * s), 6);
    assert_int_equal(timeouts_in(s, 122 * s), 6); /* and a minute later */
    assert_int_equal(timeouts_in(s, (64 + 6000) * s), 106);
    assert_int_equal(timeouts_in(100 * s, 1001 * s), 10); /* what is longer to begin with stays */
}

/* Flows that began together time out together, and fall upon the same few packets of buffer. All get through
 * in hours, of which most is waiting. */
static void a_crowd_with_one_clock_gets_through(void **state)
{
    (void)state;
    enum { CROWD = 400 };
    static struct netsim_world world;
    static struct netsim_flow_request flows[CROWD];
    struct netsim_config config = faulty_config((struct lh_link_spec){.loss = 0.02});
    config.switches.buffer_bytes = 4 * 4174;
    config.transport.window_bytes = 0;
    config.transport.rto_min_ps = 10 * NETSIM_PS_PER_MS;
    for (uint32_t i = 0; i < CROWD; i++)
        flows[i] = (struct netsim_flow_request){4 * 4096, 0, i % 4, 4};
    netsim_world_open(&world, &config, flows, CROWD, 21);
    assert_int_equal(netsim_run(&world.net, 10000 * NETSIM_PS_PER_S, UINT64_MAX), 1);
    netsim_world_check_end(&world);
    netsim_world_check_done(&world);
    netsim_world_close(&world);
}

static void no_more_than_the_window_is_on_the_way(void **state)
{
    (void)state;
    static struct netsim_world world;
    static const uint64_t windows[] = {4096, 65536, NETSIM_WINDOW_BDP};
    for (size_t w = 0; w < 3; w++) {
        struct netsim_config config = faulty_config((struct lh_link_spec){.loss = 0.02});
        const struct netsim_flow_request flow = {2000 * 4096, 0, 0, 4};
        config.transport.window_bytes = windows[w];
        netsim_world_open(&world, &config, &flow, 1, 21);
        const struct netsim_sender *sender = &world.net.transport.flows[0].sender;
        while (netsim_run(&world.net, NETSIM_NEVER, 1) == 0)
            assert_true(sender->next - sender->acknowledged <= sender->window_packets);
        uint64_t rtt_packets = 6 * NETSIM_PS_PER_US / (4174 * 80) + 3;
        if (windows[w] == NETSIM_WINDOW_BDP)
            assert_true(sender->window_packets >= rtt_packets && sender->window_packets <= rtt_packets + 4);
        else
            assert_true(sender->window_packets == windows[w] / 4096);
        netsim_world_check_end(&world);
        netsim_world_check_done(&world);
        netsim_world_close(&world);
    }
}

/* Datagrams are not repeated: what is lost stays lost, and the run ends all the same. */
static void lost_datagrams_stay_lost(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = faulty_config((struct lh_link_spec){.loss = 0.01});
    const struct netsim_flow_request flow = {PACKETS * 4096, 0, 0, 4};
    config.transport.ack_bytes = 0;
    netsim_world_open(&world, &config, &flow, 1, 21);
    netsim_world_watch(&world);
    netsim_world_finish(&world);
    netsim_world_check_end(&world);
    const struct lh_netsim_totals *totals = &world.net.network.totals;
    assert_true(totals->data_packets == PACKETS && totals->repeated_packets == 0);
    assert_true(totals->delivered_bytes == (PACKETS - totals->lost_packets) * 4096);
    assert_true(is_about(totals->lost_packets, PACKETS, 0.01, 1) && totals->flows_done == 0);
    assert_true(world.net.transport.flows[0].done_ps == NETSIM_NEVER);
    netsim_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_ones_are_repeated),
        cmocka_unit_test(bursts_too),
        cmocka_unit_test(damaged_ones_are_repeated),
        cmocka_unit_test(doubled_ones_count_once),
        cmocka_unit_test(overtaking_within_reason_repeats_nothing),
        cmocka_unit_test(a_timeout_is_exact_and_backs_off),
        cmocka_unit_test(a_wait_is_doubled_up_to_a_minute),
        cmocka_unit_test(a_crowd_with_one_clock_gets_through),
        cmocka_unit_test(no_more_than_the_window_is_on_the_way),
        cmocka_unit_test(lost_datagrams_stay_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
