/*
 * The hybrid scheme's machines over a simulated path: what each loss costs, that parity follows the data
 * it is for, that the hand-over from repeats to parity leaves nothing behind, and thousands of paths that
 * must end.
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

#include "support/sanitized.h"
#include "support/sr_world.h"

#define RTT (25 * LH_NS_PER_MS)

static struct sr_world_spec spec_of(uint32_t chunks, lh_time chunk_ns)
{
    return (struct sr_world_spec){.scheme = sr_world_scheme("hybrid"),
                                  .chunks = chunks,
                                  .chunk_ns = chunk_ns,
                                  .rtt_ns = RTT,
                                  .seed = 1};
}

static double over_ideal(const struct sr_world_spec *spec, const struct sr_world_result *result)
{
    return (double)result->done_ns / (double)sr_world_ideal_ns(spec);
}

static void test_nothing_lost_costs_no_time(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 33, 240, 241, 1024, 20000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct sr_world_spec spec = spec_of(sizes[i], 2000);
        struct sr_world_result result = sr_world_run(&spec);
        assert_true(result.complete && result.done_ns == sr_world_ideal_ns(&spec));
        assert_true(result.again == 0 && result.sender.fallbacks == 0);
    }
}

struct lose_one {
    uint32_t chunk;
    uint32_t injections; /* lost so often */
};

static bool lose_one(void *context, uint32_t chunk, uint32_t injection)
{
    const struct lose_one *lose = context;
    return chunk == lose->chunk && injection < lose->injections;
}

/* Early chunks are retransmitted and cost their place on the link; late ones are decoded and cost a few
 * of parity. 25,000 chunks take two round trips. */
static void test_each_loss_is_nearly_free(void **state)
{
    (void)state;
    struct sr_world_spec spec = spec_of(25000, 2000);
    struct lose_one lose = {.injections = 1};
    spec.lose_chunk = lose_one;
    spec.context = &lose;
    for (lose.chunk = 0; lose.chunk < 25000; lose.chunk += 24999 / 17) {
        struct sr_world_result result = sr_world_run(&spec);
        assert_true(result.complete && result.sender.fallbacks == 0);
        assert_true(result.again == (lose.chunk < 8000) || lose.chunk < 11000);
        assert_int_equal(result.again + result.recovered, 1);
        /* Parity comes in whole rows of a block of 32 submessages, and for each block of the last round
         * trip. */
        assert_true(result.done_ns <= sr_world_ideal_ns(&spec) + 300 * spec.chunk_ns);
    }
}

/* The repair of an early chunk is lost, too: it is in flight at the end, and is covered as any other
 * chunk. */
static void test_a_lost_repair_is_covered(void **state)
{
    (void)state;
    struct sr_world_spec spec =
        spec_of(18000, 2000); /* 36 ms: repairs of the first 7.9 ms arrive in time */
    struct lose_one lose = {.injections = 2};
    spec.lose_chunk = lose_one;
    spec.context = &lose;
    for (lose.chunk = 0; lose.chunk < 3500; lose.chunk += 250) {
        struct sr_world_result result = sr_world_run(&spec);
        assert_true(result.complete && result.recovered == 1);
        assert_true(result.done_ns <= sr_world_ideal_ns(&spec) + 300 * spec.chunk_ns);
    }
}

static bool lose_parity(void *context, uint32_t chunk, uint32_t injection)
{
    const struct lose_one *lose = context;
    return lose_one(context, chunk, injection) || (chunk >= 100 && lose->chunk < 100);
}

/* A chunk is lost, and all parity of the only submessage: the report brings it forth again, each time a
 * round trip and a window later. */
static void test_what_parity_cannot_repair(void **state)
{
    (void)state;
    struct sr_world_spec spec = spec_of(100, 2000);
    struct lose_one lose = {.chunk = 5};
    spec.lose_chunk = lose_parity;
    spec.context = &lose;
    for (lose.injections = 1; lose.injections <= 3; lose.injections++) {
        struct sr_world_result result = sr_world_run(&spec);
        lh_time expected = sr_world_ideal_ns(&spec) + lose.injections * (RTT + RTT / 8);
        assert_true(result.complete && result.sender.fallbacks == 1);
        assert_true(result.done_ns >= expected && result.done_ns < expected + RTT / 16);
    }
}

/* Twice the acceptance of issue 21, at sizes that take seconds: figures of all in docs/schemes.md. */
static void test_completion_times(void **state)
{
    (void)state;
    static const struct {
        uint32_t chunks;
        double loss, burst;
        unsigned runs;
        double mean, worst, overhead; /* over the ideal; beyond the loss */
    } points[] = {
        {32, 1e-2, 0, 300, 1.0002, 1.001, 0.14},  {256, 1e-2, 8, 300, 1.0005, 1.001, 0.3},
        {2048, 1e-2, 0, 40, 1.0005, 1.001, 0.06}, {32768, 1e-2, 0, 4, 1.02, 1.02, 0.08},
        {32768, 1e-2, 8, 4, 1.02, 1.02, 0.08},    {32768, 1e-4, 0, 4, 1.002, 1.005, 0.02},
    };
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        double sum = 0, overhead = 0;
        for (unsigned run = 0; run < points[i].runs; run++) {
            struct sr_world_spec spec = spec_of(points[i].chunks, 82);
            spec.chunk_loss = points[i].loss;
            spec.burst_chunks = points[i].burst;
            spec.measured = true;
            spec.seed = run + 1;
            struct sr_world_result result = sr_world_run(&spec);
            double ratio = over_ideal(&spec, &result);
            assert_true(result.complete && ratio < points[i].worst);
            sum += ratio / points[i].runs;
            overhead +=
                ((double)result.injected - result.lost - spec.chunks) / spec.chunks / points[i].runs;
        }
        printf("%6u chunks, loss %g, bursts of %g: mean %.4f of the ideal, overhead %.4f\n",
               points[i].chunks, points[i].loss, points[i].burst, sum, overhead);
        assert_true(sum < points[i].mean && overhead < points[i].overhead);
    }
}

/* Any path, with the right bytes: sr_world checks them. */
static void test_sampled_paths_end(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= (SANITIZED ? 1000 : 4000); seed++) {
        struct lh_prng prng;
        static const char *const params[] = {"",       "target=0.5", "target=1e-9",
                                             "tail=0", "tail=0.5",   "tail=1"};
        lh_prng_seed(&prng, seed);
        struct sr_world_spec spec =
            spec_of(1 + (uint32_t)lh_prng_below(&prng, lh_prng_chance(&prng, 0.1) ? 9000 : 700),
                    500 + (lh_time)lh_prng_below(&prng, 100000));
        spec.params = params[lh_prng_below(&prng, sizeof params / sizeof params[0])];
        spec.room_chunks = spec.chunks + (uint32_t)lh_prng_below(&prng, 3) * 50;
        spec.chunk_loss = lh_prng_chance(&prng, 0.7) ? lh_prng_double(&prng) * 0.3 : 0;
        spec.burst_chunks = lh_prng_chance(&prng, 0.4) ? 1 + lh_prng_double(&prng) * 40 : 0;
        spec.measured = lh_prng_chance(&prng, 0.5) && spec.chunk_loss > 0;
        spec.message_loss = lh_prng_chance(&prng, 0.5) ? lh_prng_double(&prng) * 0.3 : 0;
        spec.duplicate = lh_prng_chance(&prng, 0.3) ? 0.1 : 0;
        spec.jitter_ns = lh_prng_chance(&prng, 0.4) ? (lh_time)lh_prng_below(&prng, (uint64_t)RTT / 2) : 0;
        spec.host_ns = lh_prng_chance(&prng, 0.2) ? 2 * spec.chunk_ns : 0;
        spec.tells_caught_up = lh_prng_chance(&prng, 0.5);
        spec.in_flight = lh_prng_chance(&prng, 0.3) ? 50 + (uint32_t)lh_prng_below(&prng, 300) : 0;
        spec.encode_ns = lh_prng_chance(&prng, 0.4) ? (lh_time)lh_prng_below(&prng, RTT) : 0;
        spec.extra_open_ns = lh_prng_chance(&prng, 0.3) ? (lh_time)lh_prng_below(&prng, 4 * RTT) : 0;
        spec.rtt_unknown = lh_prng_chance(&prng, 0.1);
        spec.seed = seed;
        struct sr_world_result result = sr_world_run(&spec);
        if (!result.complete)
            fail_msg("seed %llu does not end", (unsigned long long)seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_lost_costs_no_time), cmocka_unit_test(test_each_loss_is_nearly_free),
        cmocka_unit_test(test_a_lost_repair_is_covered),   cmocka_unit_test(test_what_parity_cannot_repair),
        cmocka_unit_test(test_completion_times),           cmocka_unit_test(test_sampled_paths_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
