/*
 * test_schedule_choice.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "base/prng.h"
#include "collective/choose/schedule_choice.h"
#include "collective/schedules.h"
#include "support/near.h"
#include "support/schedule_bounds.h"

/* ---- test choose ----------------------------------------------------------------------------------- */

#define MIB (1u << 20)

/* 10 Gbit/s and 20 us in a site, 2 Gbit/s and a round trip of 25 ms across. */
static const struct flow_network LONG = {
    .inside = {.latency_s = 1e-5, .byte_s = 8e-10, .message_s = 5e-6},
    .across = {.latency_s = 12.5e-3, .byte_s = 4e-9, .message_s = 5e-6}};

static struct choice best_of(const struct choose_question *question, uint32_t *count)
{
    struct choice choices[CHOOSE_MAX];
    assert_int_equal(choose_check(question), 0);
    void *memory = malloc(choose_memory(question));
    assert_non_null(memory);
    *count = choose(question, memory, choices);
    free(memory);
    for (uint32_t i = 1; i < *count; i++)
        assert_true(choices[0].seconds <= choices[i].seconds * 1.0101 &&
                    choices[i - (i > 1)].seconds <= choices[i].seconds);
    for (uint32_t i = 0; i < *count; i++) {
        struct schedule_shape shape = choose_shape(question, &choices[i]);
        assert_int_equal(schedule_shape_check(choices[i].schedule, &shape), 0);
    }
    print_message("%-12s %4u ranks, %9llu bytes: %-17s blocks of %8.0f, %.3f ms (%u candidates)\n",
                  collective_name(question->collective), question->ranks,
                  (unsigned long long)question->bytes, choices[0].schedule->name, choices[0].block_bytes,
                  choices[0].seconds * 1e3, *count);
    return choices[0];
}

static struct choose_question question(enum collective collective, uint32_t ranks, uint64_t bytes,
                                       const struct site_map *map)
{
    return (struct choose_question){.collective = collective,
                                    .ranks = ranks,
                                    .map = map,
                                    .bytes = bytes,
                                    .unit_bytes = 4,
                                    .block_bytes_max = MIB,
                                    .network = &LONG};
}

/* One rank at each of two sites: half a round trip and the data once. */
static void test_two_sites(void **state)
{
    (void)state;
    struct schedule_map map;
    uint32_t count;
    schedule_map_of(&map, 2, 1, false);
    for (uint32_t mib = 1; mib <= 64; mib *= 4) {
        struct choose_question asked = question(COLLECTIVE_ALLREDUCE, 2, mib * MIB, &map.map);
        struct choice best = best_of(&asked, &count);
        if (mib == 1)
            assert_string_equal(best.schedule->name, "direct");
        assert_near(best.seconds, 12.5e-3 + mib * MIB * 4e-9, 0.02);
    }
    /* Where sums take time, all exchanges in two steps add up less at the end, and are not worth it. */
    struct flow_network sums = LONG;
    sums.sum_byte_s = 1e-10;
    struct choose_question asked = question(COLLECTIVE_ALLREDUCE, 2, 16 * MIB, &map.map);
    asked.block_bytes_max = asked.block_bytes_min = MIB / 4;
    asked.network = &sums;
    assert_string_equal(best_of(&asked, &count).schedule->name, "direct");
}

/* Sites of eight: across a long link each byte once, and half a round trip as seldom as possible. */
static void test_sites_of_eight(void **state)
{
    (void)state;
    struct schedule_map map;
    uint32_t count;
    schedule_map_of(&map, 24, 8, true);
    struct choose_question asked = question(COLLECTIVE_ALLREDUCE, 24, 16 * MIB, &map.map);
    assert_string_equal(best_of(&asked, &count).schedule->name, "hierarchical");
    asked = question(COLLECTIVE_BROADCAST, 24, 16 * MIB, &map.map);
    struct choice best = best_of(&asked, &count);
    assert_string_equal(best.schedule->name, "hybrid");
    assert_near(best.seconds, 2 * 0.0125 + 8 * MIB * 4e-9, 0.05); /* two links carry half each */
    asked = question(COLLECTIVE_ALLTOALL, 24, 1024, &map.map);
    best_of(&asked, &count);
}

/* In one site: few steps for little data, few bytes for much. */
static void test_one_site(void **state)
{
    (void)state;
    uint32_t count;
    for (enum collective each = 0; each < COLLECTIVES; each++)
        for (uint64_t bytes = 8; bytes <= 64 * MIB; bytes *= 4096) {
            struct choose_question asked = question(each, 16, bytes, NULL);
            struct choice best = best_of(&asked, &count);
            asked.only = schedule_find(each, NULL);
            assert_true(best.seconds <= best_of(&asked, &count).seconds * 1.0101);
        }
    struct choose_question asked = question(COLLECTIVE_ALLREDUCE, 16, 64 * MIB, NULL);
    assert_near(best_of(&asked, &count).seconds, 64 * MIB * 2 * 15 / 16.0 * 8e-10, 0.15);
}

/* Of those that take at most a hundredth more, the one of the largest blocks; of these, the one of the fewest
 * steps. */
static void test_calm(void **state)
{
    (void)state;
    struct choice choices[CHOOSE_MAX];
    uint32_t ties = 0, others = 0;
    struct flow_network light = LONG; /* many blocks cost little more than few */
    light.inside.message_s = light.across.message_s = 1e-9;
    for (uint32_t ranks = 3; ranks <= 8; ranks += 5)
        for (enum collective each = 0; each < COLLECTIVE_BARRIER; each++) {
            /* Thousands of blocks: smaller ones are faster, by less than a hundredth. */
            struct choose_question asked = question(each, ranks, 128 * MIB, NULL);
            asked.network = &light;
            void *memory = malloc(choose_memory(&asked));
            assert_non_null(memory);
            uint32_t count = choose(&asked, memory, choices);
            double least = choices[0].seconds;
            for (uint32_t i = 1; i < count; i++)
                least = choices[i].seconds < least ? choices[i].seconds : least;
            const struct schedule_shape shape = choose_shape(&asked, &choices[0]);
            for (uint32_t i = 1; i < count; i++) {
                const struct schedule_shape other = choose_shape(&asked, &choices[i]);
                if (choices[i].seconds > least * 1.0099)
                    continue;
                ties++;
                assert_true(choices[i].block_bytes <= choices[0].block_bytes);
                others += choices[i].block_bytes < choices[0].block_bytes;
                if (choices[i].block_bytes >= choices[0].block_bytes)
                    assert_true(schedule_steps(choices[i].schedule, &other) >=
                                schedule_steps(choices[0].schedule, &shape));
            }
            free(memory);
        }
    print_message("%u ties, %u of them with smaller blocks\n", ties, others);
    assert_true(others > 0 && ties > others);
}

static void test_invalid(void **state)
{
    (void)state;
    struct choose_question asked = question(COLLECTIVES, 2, 8, NULL);
    assert_int_equal(choose_check(&asked), -LH_EINVAL);
    asked = question(COLLECTIVE_ALLREDUCE, 0, 8, NULL);
    assert_int_equal(choose_check(&asked), -LH_EINVAL);
    asked = question(COLLECTIVE_ALLREDUCE, 2, 0, NULL);
    assert_int_equal(choose_check(&asked), -LH_EINVAL);
    asked = question(COLLECTIVE_ALLREDUCE, 2, 8, NULL);
    asked.block_bytes_max = 3;
    assert_int_equal(choose_check(&asked), -LH_EINVAL);
}

static int run_choose(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_sites), cmocka_unit_test(test_sites_of_eight),
        cmocka_unit_test(test_one_site),  cmocka_unit_test(test_calm),
        cmocka_unit_test(test_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test flow time -------------------------------------------------------------------------------- */

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

static int run_flow_time(void)
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

/* ---- test paths ------------------------------------------------------------------------------------ */

/* One block from one rank to another. */
static double broadcast_s(const struct path_figures *path, double bytes, uint32_t blocks)
{
    const struct schedule *schedule = schedule_find(COLLECTIVE_BROADCAST, "binomial-tree");
    const struct schedule_shape shape = {.ranks = 2, .blocks = blocks};
    const struct flow_network network = paths_network(path, path, 1e6);
    void *memory = malloc(flow_time_memory(&shape));
    double seconds = flow_time(schedule, &shape, bytes, &network, NULL, memory);
    free(memory);
    return seconds;
}

static void test_path(void **state)
{
    (void)state;
    struct path_figures path = {.rtt_ns = 10000000, .rate_bps = 1000000000, .packet_bytes = 1000};
    assert_near(broadcast_s(&path, 1e6, 1), 5e-3 + PATHS_MESSAGE_S + 8e-3, 1e-3);
    path.loss = 1000000; /* 1e-3: of a thousand packets one, so a round trip */
    assert_near(broadcast_s(&path, 1e6, 1), 15e-3 + PATHS_MESSAGE_S + 8e-3, 1e-3);
    path.loss *= 100; /* but no more than one */
    assert_near(broadcast_s(&path, 1e6, 1), 15e-3 + PATHS_MESSAGE_S + 8e-3, 1e-3);
    path.rate_bps = 0;
    path.loss = 0;
    assert_near(broadcast_s(&path, 1e6, 1), 5e-3 + PATHS_MESSAGE_S + 8e6 / PATHS_RATE_BPS, 1e-3);
}

/* Small blocks of a transfer share a message. */
static void test_messages(void **state)
{
    const struct path_figures path = {.rtt_ns = 0};
    (void)state;
    double one = broadcast_s(&path, 16, 1), many = broadcast_s(&path, 16, 16);
    assert_near(one, many, 1e-3);
    assert_true(broadcast_s(&path, 16, 17) > one + PATHS_MESSAGE_S / 2);
}

static int run_paths(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_path), cmocka_unit_test(test_messages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test rounds ----------------------------------------------------------------------------------- */

#define RANKS_MAX 48u

static uint32_t site_at(const struct site_map *map, uint32_t rank)
{
    return map->site_of[map->place_of[rank]];
}

/* Partners agree; in a round a pair of sites has one pair, and a site one pair across. */
static void check_round(const struct site_map *map, uint32_t ranks, uint32_t round,
                        bool met[RANKS_MAX][RANKS_MAX])
{
    bool inside = round < rounds_inside(map), busy[RANKS_MAX] = {false};
    for (uint32_t a = 0; a < ranks; a++) {
        uint32_t b = rounds_partner(map, a, round);
        if (b == ROUNDS_NONE)
            continue;
        assert_true(b < ranks && b != a);
        assert_int_equal(rounds_partner(map, b, round), a);
        assert_int_equal(inside, site_at(map, a) == site_at(map, b));
        assert_false(met[a][b]);
        met[a][b] = true;
        if (!inside) {
            assert_false(busy[site_at(map, a)]);
            busy[site_at(map, a)] = true;
        }
    }
}

static void check_met(const struct site_map *map, uint32_t ranks, bool met[RANKS_MAX][RANKS_MAX])
{
    for (uint32_t a = 0; a < ranks; a++)
        for (uint32_t site = 0; site < map->sites; site++) {
            uint32_t count = 0, size = map->first[site + 1] - map->first[site];
            for (uint32_t place = map->first[site]; place < map->first[site + 1]; place++)
                count += met[a][map->rank_at[place]];
            assert_true(site == site_at(map, a) ? count == size - 1 : count >= 1);
        }
}

static void check_map(const uint32_t *site_of, uint32_t ranks)
{
    static bool met[RANKS_MAX][RANKS_MAX];
    uint32_t numbers[4 * RANKS_MAX + 1];
    struct site_map map;
    memset(met, 0, sizeof met);
    site_map_build(&map, site_of, NULL, ranks, numbers);
    for (uint32_t round = 0; round < rounds_count(&map); round++)
        check_round(&map, ranks, round, met);
    check_met(&map, ranks, met);
    assert_true(rounds_count(&map) <= ranks + map.sites * map.largest);
}

static void rounds_test_one_site(void **state)
{
    static const uint32_t site_of[RANKS_MAX] = {0};
    (void)state;
    for (uint32_t ranks = 1; ranks <= RANKS_MAX; ranks++)
        check_map(site_of, ranks);
}

static void test_sites(void **state)
{
    uint32_t site_of[RANKS_MAX];
    struct lh_prng prng;
    (void)state;
    lh_prng_seed(&prng, 3);
    for (uint32_t run = 0; run < 1000; run++) {
        uint32_t ranks = 1 + (uint32_t)lh_prng_below(&prng, RANKS_MAX);
        uint32_t sites = 1 + (uint32_t)lh_prng_below(&prng, ranks);
        for (uint32_t r = 0; r < ranks; r++)
            site_of[r] = (uint32_t)lh_prng_below(&prng, sites);
        check_map(site_of, ranks);
    }
}

/* What was not measured is as slow as the slower of the two with the other's site, each direction by
 * itself. */
static void test_fill(void **state)
{
    static const uint32_t site_of[] = {0, 0, 0, 1, 1, 1};
    struct path_figures pairs[36] = {0};
    uint32_t numbers[25], measured = 0;
    struct site_map map;
    (void)state;
    site_map_build(&map, site_of, NULL, 6, numbers);
    for (uint32_t round = rounds_inside(&map); round < rounds_count(&map); round++)
        for (uint32_t a = 0; a < 3; a++) {
            uint32_t b = rounds_partner(&map, a, round);
            if (b == ROUNDS_NONE)
                continue;
            pairs[a * 6 + b].rate_bps = a == 1 ? 100 : 1000;
            pairs[b * 6 + a].rate_bps = 500;
            measured++;
        }
    assert_int_equal(measured, 3);
    rounds_fill(&map, pairs);
    for (uint32_t a = 0; a < 3; a++)
        for (uint32_t b = 3; b < 6; b++) {
            uint32_t partner_of_slow = 4; /* of rank 1: it received no more than that sent */
            bool slow = a == 1 || b == partner_of_slow;
            assert_int_equal(pairs[a * 6 + b].rate_bps, slow ? 100 : 1000);
            assert_int_equal(pairs[b * 6 + a].rate_bps, 500);
        }
    assert_int_equal(pairs[1].rate_bps, 0); /* inside a site */
}

static int run_rounds(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_test_one_site),
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_choose() + run_flow_time() + run_paths() + run_rounds();
}
