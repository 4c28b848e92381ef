/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/choose/flow_time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "collective/schedule/schedule_table.h"
#include "support/near.h"
#include "support/schedule_bounds.h"

#define MESSAGE 1e-5
#define BYTE    1e-9

static double time_of(enum collective collective, const char *name, const struct schedule_shape *shape,
                      double bytes, const struct flow_network *network, struct lh_prng *prng)
{
    const struct schedule *schedule = schedule_find(collective, name);
    void *memory = malloc(flow_time_memory(shape));
    assert_non_null(schedule);
    assert_non_null(memory);
    double seconds = flow_time(schedule, shape, bytes, network, prng, memory);
    free(memory);
    return seconds;
}

/* Without latency each step of a pipeline, and of a ring, takes what a block takes. */
static void test_steps(void **state)
{
    (void)state;
    struct flow_network network = {.inside = {.byte_s = BYTE, .message_s = MESSAGE}};
    struct schedule_shape shape = {.ranks = 8, .blocks = 40};
    double block = 1e6 / 40 * BYTE + MESSAGE;
    assert_near(time_of(COLLECTIVE_BROADCAST, "binomial-pipeline", &shape, 1e6, &network, NULL),
                (3 + 39) * block, 1e-9);
    assert_near(time_of(COLLECTIVE_REDUCE, "binomial-pipeline", &shape, 1e6, &network, NULL),
                (3 + 39) * block, 1e-9);
    assert_near(time_of(COLLECTIVE_BROADCAST, "chain", &shape, 1e6, &network, NULL), 46 * block, 1e-9);
    assert_near(time_of(COLLECTIVE_ALLREDUCE, "ring", &shape, 1e6, &network, NULL), 14 * 5 * block, 1e-9);
    assert_near(time_of(COLLECTIVE_ALLTOALL, "pairwise", &shape, 1e6, &network, NULL), 7 * 5 * block, 1e-9);
}

/* Blocks follow each other without a barrier: a latency counts once for each hop, not for each block; and a
 * block of the all-gather goes when that block's sum is there. */
static void test_latency_once(void **state)
{
    (void)state;
    struct flow_network network = {.inside = {.byte_s = BYTE, .latency_s = 0.01}};
    struct schedule_shape two = {.ranks = 2, .blocks = 100}, four = {.ranks = 4, .blocks = 100};
    assert_near(time_of(COLLECTIVE_BROADCAST, "chain", &two, 1e6, &network, NULL), 0.011, 1e-9);
    assert_near(time_of(COLLECTIVE_BROADCAST, "chain", &four, 1e6, &network, NULL), 0.031 + 2e-5, 1e-9);
    assert_near(time_of(COLLECTIVE_ALLREDUCE, "direct", &two, 1e6, &network, NULL), 0.011, 1e-9);
    assert_near(time_of(COLLECTIVE_ALLREDUCE, "bruck", &two, 1e6, &network, NULL), 0.02051, 1e-9);
}

/* Ranks of a site share the link to another: 4 of them send 4 messages over it in turn. */
static void test_shared_link(void **state)
{
    (void)state;
    struct schedule_map map;
    struct flow_network network = {.inside = {.byte_s = BYTE / 1e3},
                                   .across = {.byte_s = BYTE, .latency_s = 0.01}};
    struct schedule_shape shape = {.ranks = 8, .blocks = 8, .map = &map.map};
    schedule_map_of(&map, 8, 4, false);
    /* half of what 4 ranks have crosses, in each direction */
    assert_near(time_of(COLLECTIVE_ALLTOALL, "pairwise", &shape, 1e6, &network, NULL),
                0.01 + 4 * 0.5e6 * BYTE, 0.01);
    double hybrid = time_of(COLLECTIVE_BROADCAST, "hybrid", &shape, 1e6, &network, NULL);
    assert_near(hybrid, 0.01 + 1e6 * BYTE, 0.01);
    assert_near(time_of(COLLECTIVE_BROADCAST, "sequential", &shape, 1e6, &network, NULL), 0.01 + 4e6 * BYTE,
                0.01);
}

/* What a rank sends across, and inside its site, leaves by one port: the root of `hybrid` sends each block
 * twice. Slower links take longer than that. */
static void test_shared_port(void **state)
{
    (void)state;
    struct schedule_map map;
    struct flow_network network = {.inside = {.byte_s = BYTE},
                                   .across = {.byte_s = BYTE / 1e3, .latency_s = 0.01}};
    struct schedule_shape shape = {.ranks = 8, .blocks = 1000, .map = &map.map};
    schedule_map_of(&map, 8, 4, false);
    assert_near(time_of(COLLECTIVE_BROADCAST, "sequential", &shape, 1e6, &network, NULL), 0.01 + 7e6 * BYTE,
                1e-3);
    assert_near(time_of(COLLECTIVE_BROADCAST, "hybrid", &shape, 1e6, &network, NULL), 0.01 + 2e6 * BYTE,
                1e-3);
    network.across.byte_s = 4 * BYTE;
    assert_near(time_of(COLLECTIVE_BROADCAST, "hybrid", &shape, 1e6, &network, NULL), 0.01 + 4e6 * BYTE,
                1e-3);
}

/* Ranks that share processors take together what their work takes there, sums with it; enough processors
 * change nothing. */
static void test_shared_processors(void **state)
{
    (void)state;
    struct flow_network network = {.inside = {.byte_s = BYTE}, .sum_byte_s = BYTE / 2, .processors = 2};
    struct schedule_shape shape = {.ranks = 8, .blocks = 8};
    assert_near(time_of(COLLECTIVE_ALLTOALL, "pairwise", &shape, 1e6, &network, NULL), 3.5e6 * BYTE, 1e-3);
    /* the last sum is one processor's */
    assert_near(time_of(COLLECTIVE_ALLREDUCE, "direct", &shape, 1e6, &network, NULL), 42e6 * BYTE, 1e-3);
    network.processors = 1000;
    double many = time_of(COLLECTIVE_ALLREDUCE, "ring", &shape, 1e6, &network, NULL);
    network.processors = 0;
    assert_near(time_of(COLLECTIVE_ALLREDUCE, "ring", &shape, 1e6, &network, NULL), many, 1e-12);
}

/* A step of a barrier costs a way, also where all send in it; from two sites on, some steps stay inside. */
static void test_barrier(void **state)
{
    (void)state;
    struct schedule_map map;
    struct flow_network network = {.across = {.latency_s = 0.01}};
    for (uint32_t ranks = 2; ranks <= 64; ranks *= 2) {
        struct schedule_shape shape = {.ranks = ranks, .blocks = 1, .map = &map.map};
        schedule_map_of(&map, ranks, ranks / 2, false);
        double ways = ranks == 2 ? 1 : 2; /* from the site's edge inwards, and by the last step */
        assert_near(time_of(COLLECTIVE_BARRIER, "dissemination", &shape, 1, &network, NULL), ways * 0.01,
                    1e-9);
    }
    struct flow_network one = {.inside = {.latency_s = 0.01}};
    struct schedule_shape shape = {.ranks = 32, .blocks = 1};
    assert_near(time_of(COLLECTIVE_BARRIER, "dissemination", &shape, 1, &one, NULL), 5 * 0.01, 1e-9);
}

/* A repair delays its block and what depends on it. */
static void test_repairs(void **state)
{
    (void)state;
    static const double SAMPLES[] = {0, 0.5};
    struct lh_prng prng;
    struct flow_network network = {
        .inside = {.byte_s = BYTE, .repair_s = 0.25, .samples_s = SAMPLES, .samples = 2}};
    struct schedule_shape shape = {.ranks = 3, .blocks = 1};
    assert_near(time_of(COLLECTIVE_BROADCAST, "chain", &shape, 1e6, &network, NULL), 0.502, 1e-9);
    double sum = 0;
    lh_prng_seed(&prng, 1);
    for (int i = 0; i < 1000; i++)
        sum += time_of(COLLECTIVE_BROADCAST, "chain", &shape, 1e6, &network, &prng);
    assert_near(sum / 1000, 0.502, 0.06);
}

/* Paths of their own: a chain takes what its slowest takes, each direction by itself, and not what others
 * do; a lossy one a round trip more for what is lost. */
static void test_pairs(void **state)
{
    (void)state;
    struct flow_pair pairs[16];
    struct flow_network network = {.pairs = pairs};
    struct schedule_shape shape = {.ranks = 4, .blocks = 100};
    for (uint32_t i = 0; i < 16; i++)
        pairs[i] = (struct flow_pair){.latency_s = 0.01, .byte_s = BYTE};
    double equal = time_of(COLLECTIVE_BROADCAST, "chain", &shape, 1e6, &network, NULL);
    assert_near(equal, 0.031 + 2e-5, 1e-9);
    pairs[2 * 4 + 1].byte_s = 10 * BYTE; /* back */
    pairs[0 * 4 + 2].byte_s = 10 * BYTE; /* no hop of it */
    assert_near(time_of(COLLECTIVE_BROADCAST, "chain", &shape, 1e6, &network, NULL), equal, 1e-9);
    pairs[1 * 4 + 2].byte_s = 10 * BYTE;
    assert_near(time_of(COLLECTIVE_BROADCAST, "chain", &shape, 1e6, &network, NULL), 0.04 + 2e-5, 1e-9);
    pairs[1 * 4 + 2] = (struct flow_pair){.latency_s = 0.01, .byte_s = BYTE, .loss_byte = 1e-5};
    assert_near(time_of(COLLECTIVE_BROADCAST, "chain", &shape, 1e6, &network, NULL), equal + 0.1 * 0.02,
                1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_latency_once),
        cmocka_unit_test(test_shared_link),
        cmocka_unit_test(test_shared_port),
        cmocka_unit_test(test_shared_processors),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_repairs),
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
