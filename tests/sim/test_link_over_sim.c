/*
 * The link emulation wrapped around the simulated fabric: it must behave as the simulator's own links do.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "link/link.h"
#include "support/sim_pair.h"

static struct lh_link_spec emulated;

static int wrap(struct fabric *inner, struct fabric **outer)
{
    return fabric_link_open(inner, &emulated, outer);
}

static void open_pair(struct sim_pair *pair, const char *emulation, const char *link, uint32_t channels)
{
    struct sim_pair_options options = {.world = "linked", .seed = 1, .channels = channels, .wrap = wrap};
    print_message("emulated %s over link %s, seed 1\n", emulation, link);
    assert_int_equal(lh_link_parse(emulation, &emulated), 0);
    assert_int_equal(lh_link_parse(link, &options.link), 0);
    pair_open(pair, &options);
}

static lh_time time_of_a_message(const char *emulation, const char *link)
{
    struct sim_pair pair;
    open_pair(&pair, emulation, link, 2);
    pair_post_all(&pair, 0, 0, pair.packets);
    pair_settle(&pair, 1);
    assert_int_equal(pair_received(&pair, 1), pair.packets);
    assert_true(pair_exact(&pair, 1));
    lh_time took_ns = sim_world_now(pair.world);
    pair_close(&pair);
    return took_ns;
}

static void emulated_and_simulated_links_take_the_same_time(void **state)
{
    (void)state;
    lh_time simulated_ns = time_of_a_message("none", "rate=10Gbit,delay=5ms");
    lh_time emulated_ns = time_of_a_message("rate=10Gbit,delay=5ms", "none");
    assert_int_equal(emulated_ns, simulated_ns);
    assert_int_equal(emulated_ns, 256 * (1024 + 84) * 8 / 10 + 5 * LH_NS_PER_MS);
}

/* Data that is always there takes every place in the queue that comes free. */
static void data_does_not_starve_control(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "rate=1Gbit,queue=4KiB", "none", 1);
    pair_speak_while_full(&pair);
    pair_close(&pair);
}

/* The inner fabric pushes back too: its own link is the slower one. */
static void an_inner_push_back_loses_nothing(void **state)
{
    (void)state;
    lh_time took_ns = time_of_a_message("rate=10Gbit,delay=1ms", "rate=1Gbit,queue=4KiB");
    assert_int_equal(took_ns, (1024 + 84) * 8 / 10 + LH_NS_PER_MS + 256 * (1024 + 84) * 8);
}

static void damage_of_the_emulation_is_caught(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "corrupt=0.5,duplicate=0.2,loss=0.1,delay=1ms,jitter=1ms", "none", 2);
    uint32_t received = 0;
    for (uint32_t round = 0; round < 20; round++) {
        pair_unbind(&pair, 1);
        pair_bind(&pair, 1, 0);
        pair_post_all(&pair, 0, 0, pair.packets);
        received += pair_settle(&pair, 1);
        assert_true(pair_exact(&pair, 1));
    }
    const struct lh_stats *sent = &pair.ends[0].stats;
    uint64_t caught = lh_stats_bad_packets(&pair.ends[1].stats);
    assert_int_equal(received + caught, 20 * pair.packets - sent->link_dropped + sent->link_duplicated);
    assert_true(sent->link_corrupted > 2000 && sent->link_duplicated > 700 && sent->link_dropped > 350);
    /* A duplicate is damaged twice. */
    assert_in_range(caught, sent->link_corrupted - 20, sent->link_corrupted + sent->link_duplicated);
    pair_close(&pair);
}

static uint64_t trace_of(const char *emulation)
{
    struct sim_pair pair;
    open_pair(&pair, emulation, "delay=1ms", 2);
    for (uint32_t from = 0; from < 2; from++)
        pair_post_all(&pair, from, 0, pair.packets);
    pair_settle(&pair, 1);
    uint64_t trace = sim_world_trace(pair.world);
    pair_close(&pair);
    return trace;
}

static void one_seed_has_one_trace(void **state)
{
    (void)state;
    const char *text = "loss=0.1,duplicate=0.1,jitter=100us,rate=10Gbit,seed=5";
    assert_int_equal(trace_of(text), trace_of(text));
    assert_int_not_equal(trace_of(text),
                         trace_of("loss=0.1,duplicate=0.1,jitter=100us,rate=10Gbit,seed=6"));
}

/* The two ends of a connection do not lose the same packets. */
static void the_two_directions_differ(void **state)
{
    (void)state;
    struct sim_pair pair;
    open_pair(&pair, "loss=0.5", "none", 2);
    for (uint32_t from = 0; from < 2; from++)
        pair_post_all(&pair, from, 0, pair.packets);
    pair_settle(&pair, 1);
    pair_poll(&pair, 0);
    uint32_t differ = 0;
    for (uint32_t i = 0; i < pair.packets / 64; i++)
        differ += pair.ends[0].received[i] != pair.ends[1].received[i];
    assert_int_equal(differ, pair.packets / 64);
    pair_close(&pair);
}

/* ---- threads: each channel has an owner who posts and pumps; the spec changes under them ------------- */

#define CHANNELS 4u
#define ROUNDS   40u

struct owner {
    struct sim_pair *pair;
    uint32_t channel;
    _Atomic uint32_t *finished;
};

/* Posts every packet of its channel ROUNDS times, and then lets go what is still on the way. */
static void *own_channel(void *argument)
{
    const struct owner *owner = argument;
    struct sim_pair *pair = owner->pair;
    struct fabric_endpoint *endpoint = pair->ends[0].endpoint;
    const struct fabric_ops *ops = endpoint->fabric->ops;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t packet = 0; packet < pair->packets; packet++) {
            if (pair_channel_of(pair, packet) != owner->channel)
                continue;
            while (!pair_post(pair, 0, packet)) {
                ops->pump(endpoint, owner->channel, ops->now(endpoint->fabric));
                sched_yield();
            }
        }
    }
    while (ops->pump(endpoint, owner->channel, ops->now(endpoint->fabric)) != LH_TIME_NEVER)
        sched_yield();
    atomic_fetch_add(owner->finished, 1);
    return NULL;
}

static void owners_of_channels_do_not_disturb_each_other(void **state)
{
    (void)state;
    struct sim_pair pair;
    pthread_t threads[CHANNELS];
    struct owner owners[CHANNELS];
    _Atomic uint32_t finished = 0;
    open_pair(&pair, "rate=100Gbit,delay=50us,jitter=10us", "none", CHANNELS);
    for (uint32_t i = 0; i < CHANNELS; i++) {
        owners[i] = (struct owner){.pair = &pair, .channel = i, .finished = &finished};
        assert_int_equal(pthread_create(&threads[i], NULL, own_channel, &owners[i]), 0);
    }
    uint64_t arrivals = 0;
    for (uint32_t turn = 0; atomic_load(&finished) < CHANNELS; turn++) {
        sim_world_advance(pair.world, sim_world_now(pair.world) + LH_NS_PER_US);
        arrivals += pair_poll(&pair, 1);
        emulated.delay_ns = (turn % 8 + 1) * 20 * LH_NS_PER_US; /* the memory grows and is retired, too */
        emulated.rate_bps = turn % 5 == 0 ? 0 : 100000000000;
        if (turn % 16 == 0)
            fabric_link_set(pair.ends[0].endpoint, &emulated);
    }
    for (uint32_t i = 0; i < CHANNELS; i++)
        pthread_join(threads[i], NULL);
    arrivals += pair_settle(&pair, 1);
    assert_int_equal(arrivals, (uint64_t)ROUNDS * pair.packets);
    assert_true(pair_exact(&pair, 1));
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emulated_and_simulated_links_take_the_same_time),
        cmocka_unit_test(data_does_not_starve_control),
        cmocka_unit_test(an_inner_push_back_loses_nothing),
        cmocka_unit_test(damage_of_the_emulation_is_caught),
        cmocka_unit_test(one_seed_has_one_trace),
        cmocka_unit_test(the_two_directions_differ),
        cmocka_unit_test(owners_of_channels_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
