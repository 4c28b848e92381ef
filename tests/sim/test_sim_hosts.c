/* What simulated hosts have to themselves: clocks, ports, links of one direction, what their polls take. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/sim_pair.h"

#define PPB 1000000000

static struct sim_world *open_world(void)
{
    struct sim_world *world = sim_world_create("hosts", 1, NULL);
    assert_non_null(world);
    return world;
}

static void test_clock_is_the_worlds_at_first(void **state)
{
    (void)state;
    struct sim_world *world = open_world();
    sim_world_advance(world, 5 * LH_NS_PER_S);
    assert_int_equal(sim_world_host_now(world, 1), 5 * LH_NS_PER_S);
    assert_int_equal(sim_world_host_when(world, 1, 3 * LH_NS_PER_S), 5 * LH_NS_PER_S);
    assert_int_equal(sim_world_host_when(world, 1, 7 * LH_NS_PER_S), 7 * LH_NS_PER_S);
    assert_true(sim_world_host_when(world, 1, LH_TIME_NEVER) == LH_TIME_NEVER);
    sim_world_destroy(world);
}

/* The moment at which a clock shows a value is the first one at which it does. */
static void check_inverse(struct sim_world *world, uint32_t host, lh_time shown_ns)
{
    lh_time at_ns = sim_world_host_when(world, host, shown_ns);
    if (at_ns > sim_world_now(world)) {
        sim_world_advance(world, at_ns - 1);
        assert_true(sim_world_host_now(world, host) < shown_ns);
    }
    sim_world_advance(world, at_ns);
    assert_true(sim_world_host_now(world, host) >= shown_ns);
}

static void test_clock_gains_and_loses(void **state)
{
    (void)state;
    const int32_t skews[] = {0, 1, -1, 200000, -200000, 333333333, -999999999};
    for (size_t i = 0; i < sizeof skews / sizeof skews[0]; i++) {
        struct sim_world *world = open_world();
        const struct sim_clock clock = {.ahead_ns = 1000, .skew_ppb = skews[i]};
        sim_world_set_clock(world, 3, &clock);
        assert_int_equal(sim_world_host_now(world, 3), 1000);
        assert_int_equal(sim_world_host_now(world, 2), 0);
        for (lh_time shown_ns = 1001; shown_ns < 1020; shown_ns++)
            check_inverse(world, 3, shown_ns);
        sim_world_advance(world, 1000 * LH_NS_PER_S);
        int64_t gained = (int64_t)sim_world_host_now(world, 3) - (int64_t)(1000 * LH_NS_PER_S) - 1000;
        assert_in_range(gained - (int64_t)skews[i] * 1000 + 2, 0, 4);
        sim_world_destroy(world);
    }
}

static void test_clock_jumps_forward(void **state)
{
    (void)state;
    struct sim_world *world = open_world();
    const struct sim_clock clock = {.ahead_ns = 7, .skew_ppb = 100};
    sim_world_set_clock(world, 0, &clock);
    sim_world_advance(world, LH_NS_PER_S);
    sim_world_jump_clock(world, 0, 50);
    assert_int_equal(sim_world_host_now(world, 0), LH_NS_PER_S + 7 + 100 + 50);
    assert_int_equal(sim_world_host_when(world, 0, LH_NS_PER_S + 100), LH_NS_PER_S);
    sim_world_jump_clock(world, 1, 9);
    assert_int_equal(sim_world_host_now(world, 1), LH_NS_PER_S + 9);
    sim_world_destroy(world);
}

/* The fabric of a host tells that host's time, and its pump speaks of that time too. */
static void test_fabric_lives_in_its_hosts_time(void **state)
{
    (void)state;
    struct sim_pair pair;
    pair_open(&pair, &(struct sim_pair_options){
                         .world = "skewed", .seed = 1, .link = {.rate_bps = 1000000, .queue_bytes = 2000}});
    const struct sim_clock clock = {.ahead_ns = 500, .skew_ppb = -200000};
    sim_world_set_clock(pair.world, 0, &clock);
    struct pair_end *end = &pair.ends[0];
    assert_int_equal(end->fabric->ops->now(end->fabric), 500);
    for (uint32_t packet = 0; pair_post(&pair, 0, packet); packet++)
        assert_true(packet < 10);
    lh_time ready_ns = end->fabric->ops->pump(end->endpoint, 0, 500);
    assert_true(ready_ns > 500 && ready_ns != LH_TIME_NEVER);
    lh_time at_ns = sim_world_host_when(pair.world, 0, ready_ns);
    sim_world_advance(pair.world, at_ns + 1);
    assert_true(pair_post(&pair, 0, 3));
    pair_close(&pair);
}

static void test_one_direction_changes(void **state)
{
    (void)state;
    struct sim_pair pair;
    const struct lh_link_spec slow = {.delay_ns = LH_NS_PER_S};
    pair_open(&pair, &(struct sim_pair_options){.world = "oneway", .seed = 1, .link = {.delay_ns = 1000}});
    sim_world_set_direction(pair.world, 0, 1, &slow);
    assert_true(pair_post(&pair, 0, 0));
    assert_int_equal(sim_world_next_event(pair.world), LH_NS_PER_S);
    assert_true(pair_post(&pair, 1, 0));
    assert_int_equal(sim_world_next_event(pair.world), 1000);
    pair_close(&pair);
}

struct witness {
    uint32_t arrivals[3]; /* by enum sim_arrival */
    uint64_t bytes;
};

static void watch(void *context, const struct sim_datagram *datagram, enum sim_arrival arrival)
{
    struct witness *witness = context;
    witness->arrivals[arrival]++;
    witness->bytes += datagram->bytes;
}

static void test_watch_sees_every_arrival(void **state)
{
    (void)state;
    struct sim_pair pair;
    struct witness witness = {0};
    uint8_t bytes[64] = {0};
    pair_open(&pair,
              &(struct sim_pair_options){.world = "watched", .seed = 1, .receive_buffer_bytes = 2000});
    sim_world_watch(pair.world, watch, &witness);
    for (uint32_t packet = 0; packet < 4; packet++)
        assert_true(pair_post(&pair, 0, packet));
    struct sim_datagram nowhere = {
        .data = bytes, .bytes = sizeof bytes, .to = 5, .destination_port = SIM_PORT_FIRST};
    assert_int_equal(sim_world_inject(pair.world, &nowhere), 0);
    sim_world_advance(pair.world, 1);
    assert_int_equal(witness.arrivals[SIM_DELIVERED], 1);
    assert_int_equal(witness.arrivals[SIM_OVERFLOWED], 3);
    assert_int_equal(witness.arrivals[SIM_UNKNOWN], 1);
    assert_true(witness.bytes > 4 * 1024 + 64);
    pair_close(&pair);
}

static uint32_t one_at_a_time(void *context, uint32_t host, uint16_t port, uint32_t count)
{
    uint32_t *asked = context;
    (void)port;
    assert_int_equal(host, 1);
    (*asked)++;
    return count < 1 ? count : 1;
}

static void test_poll_takes_its_share(void **state)
{
    (void)state;
    struct sim_pair pair;
    struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
    uint32_t asked = 0;
    uint64_t bytes = 0;
    uint64_t maximum = 0;
    pair_open(&pair, &(struct sim_pair_options){.world = "shared", .seed = 1, .channels = 1});
    sim_world_poll_share(pair.world, one_at_a_time, &asked);
    struct pair_end *end = &pair.ends[1];
    assert_int_equal(end->fabric->ops->poll(end->endpoint, 0, arrivals, FABRIC_BATCH_MAX), 0);
    assert_int_equal(asked, 0);
    for (uint32_t packet = 0; packet < 3; packet++)
        assert_true(pair_post(&pair, 0, packet));
    sim_world_advance(pair.world, 1);
    assert_true(sim_world_waiting(pair.world, 1, SIM_PORT_FIRST, &bytes, &maximum));
    assert_true(bytes > 3 * 1024 && bytes <= maximum);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(end->fabric->ops->poll(end->endpoint, 0, arrivals, FABRIC_BATCH_MAX), 1);
    assert_int_equal(asked, 3);
    assert_true(sim_world_waiting(pair.world, 1, SIM_PORT_FIRST, &bytes, &maximum));
    assert_int_equal(bytes, 0);
    assert_false(sim_world_waiting(pair.world, 2, SIM_PORT_FIRST, &bytes, &maximum));
    pair_close(&pair);
}

static void test_ports_of_an_earlier_life(void **state)
{
    (void)state;
    struct sim_pair pair;
    struct qp_info_endpoint info;
    struct fabric_endpoint *again;
    pair_open(&pair, &(struct sim_pair_options){.world = "ports", .seed = 1});
    struct pair_end *end = &pair.ends[0];
    struct fabric_endpoint_attr attr = pair.attr;
    attr.stats = &end->stats;
    assert_int_equal(end->fabric->ops->endpoint_create(end->fabric, &attr, &again), 0);
    end->fabric->ops->endpoint_info(again, &info);
    uint16_t port = info.channel_port[0];
    end->fabric->ops->endpoint_destroy(again);
    sim_world_next_port(pair.world, 0, port);
    assert_int_equal(end->fabric->ops->endpoint_create(end->fabric, &attr, &again), 0);
    end->fabric->ops->endpoint_info(again, &info);
    assert_int_equal(info.channel_port[0], port);
    end->fabric->ops->endpoint_destroy(again);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_is_the_worlds_at_first),
        cmocka_unit_test(test_clock_gains_and_loses),
        cmocka_unit_test(test_clock_jumps_forward),
        cmocka_unit_test(test_fabric_lives_in_its_hosts_time),
        cmocka_unit_test(test_one_direction_changes),
        cmocka_unit_test(test_watch_sees_every_arrival),
        cmocka_unit_test(test_poll_takes_its_share),
        cmocka_unit_test(test_ports_of_an_earlier_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
