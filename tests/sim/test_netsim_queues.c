/*
 * Queues and the shared buffer of a switch: what may wait, what is dropped, what is marked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "support/netsim_world.h"

#define FRAME 4174u /* a full packet on the wire */

/* Hosts 1 to 3 of a dumbbell send to host 0, which shares their switch. */
static void incast_open(struct netsim_world *world, const struct netsim_config *config, uint64_t bytes)
{
    const struct netsim_flow_request flows[] = {{bytes, 0, 1, 0}, {bytes, 0, 2, 0}, {bytes, 0, 3, 0}};
    netsim_world_open(world, config, flows, 3, 5);
}

static const struct netsim_port *incast_port(const struct netsim_world *world)
{
    return &world->net.network.ports[netsim_world_link(world, world->graph.hosts, 0)];
}

static void a_queue_is_never_longer_than_its_limit(void **state)
{
    (void)state;
    static const uint64_t limits[] = {FRAME, 20000, 100000, 1000000};
    static struct netsim_world world;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
        config.switches.queue_bytes = limits[i];
        incast_open(&world, &config, 2000000);
        netsim_world_watch(&world);
        netsim_world_finish_in_steps(&world, NETSIM_PS_PER_US);
        netsim_world_check_end(&world);
        netsim_world_check_done(&world);
        const struct netsim_port *port = incast_port(&world);
        assert_true(port->queued_max_bytes <= limits[i]);
        assert_true(port->queued_max_bytes + FRAME > limits[i]);
        assert_true(world.net.network.totals.dropped_packets > 0);
        assert_true(world.net.network.totals.repeated_packets >= world.net.network.totals.dropped_packets);
        netsim_world_close(&world);
    }
}

/* A queue of q bytes beside nothing else takes another w as long as q + w <= alpha (B - q). */
static void a_queue_gets_alpha_of_what_is_free(void **state)
{
    (void)state;
    static const double alphas[] = {0.125, 0.5, 1, 8};
    static struct netsim_world world;
    for (size_t i = 0; i < sizeof alphas / sizeof alphas[0]; i++) {
        struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
        double maximum = alphas[i] * (1000000 + FRAME) / (1 + alphas[i]);
        config.switches.buffer_bytes = 1000000;
        config.switches.alpha = alphas[i];
        incast_open(&world, &config, 2000000);
        netsim_world_finish_in_steps(&world, NETSIM_PS_PER_US);
        netsim_world_check_end(&world);
        netsim_world_check_done(&world);
        assert_true(incast_port(&world)->queued_max_bytes <= maximum);
        assert_true(incast_port(&world)->queued_max_bytes > maximum - 2 * FRAME);
        assert_true(world.net.network.totals.dropped_packets > 0);
        netsim_world_close(&world);
    }
}

/* Two incasts to two hosts of one switch: the buffer is full although each queue has half of it. */
static void ports_share_the_buffer(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
    const struct netsim_flow_request flows[] = {
        {1000000, 0, 2, 0}, {1000000, 0, 3, 0}, {1000000, 0, 4, 1}, {1000000, 0, 5, 1}};
    config.topology.hosts = 6;
    config.switches.buffer_bytes = 300000;
    netsim_world_open(&world, &config, flows, 4, 5);
    uint64_t used_max = 0;
    while (netsim_run(&world.net, NETSIM_NEVER, 1) == 0) {
        if (world.net.network.switches[0].used_bytes > used_max)
            used_max = world.net.network.switches[0].used_bytes;
    }
    netsim_world_check_end(&world);
    netsim_world_check_done(&world);
    assert_true(used_max <= 300000 && used_max + FRAME > 300000);
    for (uint32_t host = 0; host < 2; host++) {
        uint32_t link = netsim_world_link(&world, world.graph.hosts, host);
        assert_true(world.net.network.ports[link].queued_max_bytes < 250000);
        assert_true(world.net.network.more[link].dropped_packets > 0);
    }
    netsim_world_close(&world);
}

/* ---- ECN: each packet beside the queue that it leaves behind ---- */

struct red {
    struct netsim_world *world;
    uint32_t link;
    double expected; /* number of marks between the limits */
    double variance;
    uint64_t below;
    uint64_t between;
    uint64_t marked_between;
    uint64_t above;
};

static void on_red(void *context, const struct lh_netsim_packet *packet)
{
    struct red *red = context;
    const struct netsim_switch_config *config = &red->world->config.switches;
    uint64_t queue = red->world->net.network.ports[red->link].queue_bytes[packet->priority];
    if (packet->link != red->link)
        return;
    if (queue <= config->ecn_min_bytes) {
        assert_false(packet->marked);
        red->below++;
    } else if (queue >= config->ecn_max_bytes) {
        assert_true(packet->marked);
        red->above++;
    } else {
        double chance = config->ecn_probability * (double)(queue - config->ecn_min_bytes) /
                        (double)(config->ecn_max_bytes - config->ecn_min_bytes);
        red->expected += chance;
        red->variance += chance * (1 - chance);
        red->between++;
        red->marked_between += packet->marked;
    }
}

static struct red red_run(uint64_t min, uint64_t max, double probability, uint64_t bytes)
{
    static struct netsim_world world;
    struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
    config.transport.ack_bytes = 0;
    config.switches.ecn_min_bytes = min;
    config.switches.ecn_max_bytes = max;
    config.switches.ecn_probability = probability;
    incast_open(&world, &config, bytes);
    struct red red = {.world = &world, .link = netsim_world_link(&world, world.graph.hosts, 0)};
    world.net.network.watcher = on_red;
    world.net.network.watcher_context = &red;
    world.net.network.ports[red.link].flags |= NETSIM_PORT_WATCHED;
    netsim_world_finish(&world);
    assert_true(world.net.network.totals.marked_packets == red.above + red.marked_between);
    assert_true(world.net.network.more[red.link].marked_packets == world.net.network.totals.marked_packets);
    netsim_world_close(&world);
    return red;
}

static void marks_follow_the_queue(void **state)
{
    (void)state;
    struct red red = red_run(500000, 6000000, 0.8, 4000000);
    assert_true(red.below > 100 && red.above > 100 && red.between > 1500);
    double off = fabs((double)red.marked_between - red.expected) / sqrt(red.variance);
    if (off > 4)
        fail_msg("%llu marks of %llu, %.1f expected: %.1f standard deviations",
                 (unsigned long long)red.marked_between, (unsigned long long)red.between, red.expected,
                 off);
}

static void equal_limits_are_a_step(void **state)
{
    (void)state;
    struct red red = red_run(300000, 300000, 1, 1000000);
    assert_true(red.below > 50 && red.above > 50 && red.between <= 1);
}

static void an_empty_queue_marks_nothing(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
    const struct netsim_flow_request flow = {1000000, 0, 1, 0};
    config.switches.ecn_max_bytes = 1;
    config.switches.ecn_probability = 1;
    netsim_world_open(&world, &config, &flow, 1, 5);
    netsim_world_finish(&world);
    assert_int_equal(world.net.network.totals.marked_packets, 0);
    netsim_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_is_never_longer_than_its_limit),
        cmocka_unit_test(a_queue_gets_alpha_of_what_is_free),
        cmocka_unit_test(ports_share_the_buffer),
        cmocka_unit_test(marks_follow_the_queue),
        cmocka_unit_test(equal_limits_are_a_step),
        cmocka_unit_test(an_empty_queue_marks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
