/*
 * Both machines of selective repeat over a simulated path: they always complete, repair little more than is
 * lost, and a loss costs what it must.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/sanitized.h"
#include "support/sr_world.h"

#define RTT_NS    (25 * LH_NS_PER_MS)
#define WINDOW_NS (RTT_NS / 8)
#define CHUNK_NS  ((lh_time)16384) /* 4 KiB at 2 Gbit/s */

static struct sr_world_spec ocean(const char *scheme, uint32_t chunks)
{
    return (struct sr_world_spec){.scheme = sr_world_scheme(scheme),
                                  .chunks = chunks,
                                  .chunk_ns = CHUNK_NS,
                                  .rtt_ns = RTT_NS,
                                  .seed = 1};
}

static double ms(lh_time ns)
{
    return (double)ns / 1e6;
}

/* ---- what a loss costs ------------------------------------------------------------------------------- */

struct losses {
    uint32_t chunk;           /* this chunk … */
    uint32_t injections;      /* … is lost that often */
    uint32_t to_receiver;     /* the first messages that way, so many, and … */
    uint32_t to_sender_first; /* … those of this number … */
    uint32_t to_sender;       /* … and so many from it on that way are lost too */
};

static bool lose_chunk(void *context, uint32_t chunk, uint32_t injection)
{
    const struct losses *losses = context;
    return chunk == losses->chunk && injection < losses->injections;
}

static bool lose_message(void *context, bool to_receiver, uint32_t number, const uint8_t *data,
                         uint32_t bytes)
{
    (void)data;
    (void)bytes;
    const struct losses *losses = context;
    if (to_receiver)
        return number < losses->to_receiver;
    return number >= losses->to_sender_first && number - losses->to_sender_first < losses->to_sender;
}

static struct sr_world_result run_losing(struct sr_world_spec spec, struct losses losses)
{
    spec.lose_chunk = lose_chunk;
    spec.lose_message = lose_message;
    spec.context = &losses;
    struct sr_world_result result = sr_world_run(&spec);
    assert_true(result.complete);
    return result;
}

static void test_no_loss_is_ideal(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 63, 64, 65, 256, 1024, 4096, 16384};
    static const char *const names[] = {"sr-nack", "sr-rto"};
    for (size_t n = 0; n < 2; n++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
            struct sr_world_spec spec = ocean(names[n], sizes[i]);
            struct sr_world_result result = sr_world_run(&spec);
            assert_true(result.complete);
            assert_int_equal(result.done_ns, sr_world_ideal_ns(&spec));
            assert_int_equal(result.again, 0);
            assert_int_equal(result.injected, sizes[i]);
        }
}

/* A loss in the middle shows by the next chunk: RTT + window after it would have come. */
static void test_one_lost_chunk_costs_a_round_trip_and_a_window(void **state)
{
    (void)state;
    static const uint32_t chunks = 256;
    for (uint32_t lost = 0; lost < chunks; lost++) {
        struct sr_world_spec spec = ocean("sr-nack", chunks);
        struct sr_world_result result = run_losing(spec, (struct losses){.chunk = lost, .injections = 1});
        assert_int_equal(result.again, 1);
        assert_int_equal(result.needless, 0);
        lh_time maximum = sr_world_ideal_ns(&spec) + RTT_NS + WINDOW_NS + WINDOW_NS / 16 + 2 * CHUNK_NS;
        if (result.done_ns > maximum)
            fail_msg("chunk %u: %.3f ms, at most %.3f", lost, ms(result.done_ns), ms(maximum));
    }
}

static void test_a_lost_repair_costs_the_same_again(void **state)
{
    (void)state;
    static const uint32_t chunks = 256;
    for (uint32_t lost = 0; lost < chunks; lost += 15) {
        struct sr_world_spec spec = ocean("sr-nack", chunks);
        struct sr_world_result result = run_losing(spec, (struct losses){.chunk = lost, .injections = 3});
        assert_int_equal(result.again, 3);
        lh_time round = RTT_NS + WINDOW_NS + WINDOW_NS / 8 + 2 * CHUNK_NS;
        lh_time maximum = sr_world_ideal_ns(&spec) + 3 * round;
        if (result.done_ns > maximum)
            fail_msg("chunk %u: %.3f ms, at most %.3f", lost, ms(result.done_ns), ms(maximum));
    }
}

/* The MARK behind a lost end goes out again after a window, then two, then four. */
static void test_lost_marks_cost_windows(void **state)
{
    (void)state;
    static const lh_time windows[] = {0, 1, 3, 7};
    for (uint32_t marks = 0; marks < 4; marks++) {
        struct sr_world_spec spec = ocean("sr-nack", 256);
        struct sr_world_result result =
            run_losing(spec, (struct losses){.chunk = 255, .injections = 1, .to_receiver = marks});
        lh_time maximum =
            sr_world_ideal_ns(&spec) + RTT_NS + WINDOW_NS + windows[marks] * WINDOW_NS + 2 * CHUNK_NS;
        assert_in_range(result.done_ns, maximum - 20 * CHUNK_NS, maximum); /* the link has a queue of 16 */
        assert_int_equal(result.again, 1);
    }
}

/* So does the receiver's report. Nothing else is said meanwhile: all but one chunk of few has arrived. */
static void test_lost_reports_cost_windows(void **state)
{
    (void)state;
    static const lh_time windows[] = {0, 1, 3, 7};
    for (uint32_t reports = 0; reports < 4; reports++) {
        struct sr_world_spec spec = ocean("sr-nack", 10);
        struct losses losses = {.chunk = 5, .injections = 1, .to_sender = reports};
        struct sr_world_result result = run_losing(spec, losses);
        lh_time maximum =
            sr_world_ideal_ns(&spec) + RTT_NS + WINDOW_NS + windows[reports] * WINDOW_NS + 2 * CHUNK_NS;
        if (result.done_ns > maximum)
            fail_msg("%u reports lost: %.3f ms, at most %.3f", reports, ms(result.done_ns), ms(maximum));
        assert_int_equal(result.again, 1);
    }
}

/* Nothing that the sender says comes through for a while: the probe goes on asking. */
static void test_silence_is_bridged_by_probes(void **state)
{
    (void)state;
    for (uint32_t messages = 4; messages < 10; messages++) {
        struct sr_world_spec spec = ocean("sr-nack", 256);
        struct sr_world_result result =
            run_losing(spec, (struct losses){.chunk = 255, .injections = 1, .to_receiver = messages});
        assert_int_equal(result.again, 1);
        assert_true(result.sender.probes_sent >= messages - 4);
        assert_true(result.done_ns <= sr_world_ideal_ns(&spec) + 2 * (messages - 1) * RTT_NS);
    }
}

/* The paper's scheme: RTO = 3 RTT, and the chunk itself. */
static void test_one_lost_chunk_costs_sr_rto_its_timeout(void **state)
{
    (void)state;
    struct sr_world_spec spec = ocean("sr-rto", 256);
    struct sr_world_result result = run_losing(spec, (struct losses){.chunk = 255, .injections = 1});
    assert_int_equal(result.again, 1);
    lh_time queue = 16 * CHUNK_NS; /* the timeout runs from when the link takes the chunk into its queue */
    lh_time minimum = sr_world_ideal_ns(&spec) + 3 * RTT_NS - queue;
    assert_in_range(result.done_ns, minimum, minimum + 3 * RTT_NS / 64 + queue);
    spec.params = "alpha=0.5";
    result = run_losing(spec, (struct losses){.chunk = 255, .injections = 1});
    minimum = sr_world_ideal_ns(&spec) + 3 * RTT_NS / 2 - queue;
    assert_in_range(result.done_ns, minimum, minimum + 3 * RTT_NS / 64 + queue);
}

/* ---- always completes -------------------------------------------------------------------------------- */

static double pick(struct lh_prng *prng, const double *from, size_t count)
{
    return from[lh_prng_below(prng, count)];
}

static struct sr_world_spec draw(uint64_t seed)
{
    static const double losses[] = {0, 0, 1e-3, 1e-2, 0.1, 0.3, 0.5};
    static const double doubles[] = {0, 0, 1e-2, 0.5};
    static const uint32_t sizes[] = {0, 1, 2, 64, 65, 100, 300, 1000};
    struct lh_prng prng;
    lh_prng_seed(&prng, seed);
    struct sr_world_spec spec = ocean(lh_prng_chance(&prng, 0.7) ? "sr-nack" : "sr-rto", 0);
    spec.seed = seed;
    spec.chunks = sizes[lh_prng_below(&prng, 8)];
    if (lh_prng_chance(&prng, 0.3))
        spec.room_chunks = spec.chunks + (uint32_t)lh_prng_below(&prng, 200);
    spec.chunk_ns = (lh_time)1000 << lh_prng_below(&prng, 8);
    spec.rtt_ns = (lh_time)40000 << lh_prng_below(&prng, 11);
    spec.chunk_loss = pick(&prng, losses, 7);
    spec.message_loss = pick(&prng, losses, 7);
    spec.duplicate = pick(&prng, doubles, 4);
    if (lh_prng_chance(&prng, 0.3))
        spec.burst_chunks = 1 + (double)lh_prng_below(&prng, 100);
    if (lh_prng_chance(&prng, 0.4))
        spec.jitter_ns = lh_prng_below(&prng, spec.rtt_ns); /* beyond the window, too */
    if (lh_prng_chance(&prng, 0.3))
        spec.in_flight = 1 + (uint32_t)lh_prng_below(&prng, 64);
    spec.rtt_unknown = lh_prng_chance(&prng, 0.1);
    /* With few chunks in flight each takes its own round trips. */
    spec.give_up_ns =
        (1000 + (spec.in_flight > 0 ? 100 * spec.chunks : 0)) * (spec.rtt_ns + spec.jitter_ns) +
        30000 * spec.chunk_ns;
    if (spec.rtt_unknown)
        spec.give_up_ns += 600 * LH_NS_PER_S;
    return spec;
}

static void test_always_completes(void **state)
{
    (void)state;
    uint64_t first = 1;
    uint64_t seeds = 4000;
    const char *chosen = getenv("SEED"); /* one failing seed, again */
    if (chosen != NULL) {
        first = strtoull(chosen, NULL, 0);
        seeds = 1;
    }
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        struct sr_world_spec spec = draw(seed);
        if (chosen != NULL)
            printf("seed %lu: %s, %u chunks of %lu ns, room %u, rtt %.3f ms, loss %g and %g, rows of %g, "
                   "duplicate %g, "
                   "jitter %.3f ms, "
                   "in flight %u, rtt unknown %d\n",
                   seed, spec.scheme->name, spec.chunks, spec.chunk_ns, spec.room_chunks, ms(spec.rtt_ns),
                   spec.chunk_loss, spec.message_loss, spec.burst_chunks, spec.duplicate,
                   ms(spec.jitter_ns), spec.in_flight, spec.rtt_unknown);
        if (spec.chunks == 0)
            continue;
        struct sr_world_result result = sr_world_run(&spec);
        if (!result.complete)
            fail_msg("SEED=%lu did not complete: %u injected, %u again, %u messages", seed, result.injected,
                     result.again, result.messages);
        assert_int_equal(result.sender.bad_control + result.receiver.bad_control, 0);
    }
}

/* ---- repairs little more than is lost ---------------------------------------------------------------- */

static void test_repairs_are_as_many_as_losses(void **state)
{
    (void)state;
    static const double losses[] = {0, 1e-4, 1e-3, 1e-2, 0.1, 0.5};
    for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++) {
        struct sr_world_spec spec = ocean("sr-nack", 4096);
        spec.chunk_loss = losses[i];
        spec.message_loss = losses[i];
        spec.duplicate = 0.01;
        spec.jitter_ns = WINDOW_NS / 2;
        struct sr_world_result result = sr_world_run(&spec);
        assert_true(result.complete);
        assert_int_equal(result.needless, 0);
        assert_int_equal(result.again, result.lost);
    }
}

/* A host that looks at chunks later than at messages: a MARK then comes before what it speaks of. */
static void test_a_backlog_on_the_host_is_no_loss(void **state)
{
    (void)state;
    for (int tells = 0; tells < 2; tells++)
        for (lh_time rtt = 40 * LH_NS_PER_US; rtt <= RTT_NS; rtt *= 5) {
            struct sr_world_spec spec = ocean("sr-nack", 4096);
            spec.rtt_ns = rtt;
            spec.chunk_ns = 400;
            spec.host_ns = 1000; /* 2.5 ms behind in the end */
            spec.tells_caught_up = tells;
            struct sr_world_result result = sr_world_run(&spec);
            assert_true(result.complete);
            assert_int_equal(result.again, 0);
            spec.chunk_loss = 0.01;
            result = sr_world_run(&spec);
            assert_true(result.complete);
            if (tells)
                assert_int_equal(result.again, result.lost);
        }
}

/* ---- completion times -------------------------------------------------------------------------------- */

struct times {
    double mean_ms, p99_ms, worst_ms, again;
    uint32_t messages, steps;
};

static int compare_times(const void *a, const void *b)
{
    lh_time x = *(const lh_time *)a;
    lh_time y = *(const lh_time *)b;
    return x < y ? -1 : x > y;
}

#define RUNS (SANITIZED ? 50 : 200)

static struct times measure(struct sr_world_spec spec)
{
    lh_time done[RUNS];
    struct times times = {0};
    uint64_t injected = 0, again = 0;
    for (uint64_t run = 0; run < RUNS; run++) {
        spec.seed = run + 1;
        struct sr_world_result result = sr_world_run(&spec);
        assert_true(result.complete);
        done[run] = result.done_ns;
        times.mean_ms += ms(result.done_ns) / RUNS;
        injected += result.injected;
        again += result.again;
        times.messages += result.messages;
        times.steps += result.steps;
    }
    qsort(done, RUNS, sizeof(*done), compare_times);
    times.p99_ms = ms(done[RUNS * 99 / 100 - 1]);
    times.worst_ms = ms(done[RUNS - 1]);
    times.again = (double)again / (double)injected;
    times.messages /= RUNS;
    times.steps /= RUNS;
    return times;
}

static void test_completion_times(void **state)
{
    (void)state;
    static const double losses[] = {0, 1e-5, 1e-4, 1e-3, 1e-2};
    static const uint32_t sizes[] = {256, 1024, 4096};
    static const char *const names[] = {"sr-nack", "sr-rto"};
    printf("4 KiB chunks, 2 Gbit/s, RTT 25 ms, window 3.125 ms, %d runs each; completion in ms\n", RUNS);
    printf("scheme   chunks  loss    ideal     mean      p99    worst  again     messages\n");
    for (size_t n = 0; n < 2; n++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
            for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++) {
                struct sr_world_spec spec = ocean(names[n], sizes[s]);
                spec.chunk_loss = losses[i];
                spec.message_loss = losses[i];
                struct times times = measure(spec);
                double ideal = ms(sr_world_ideal_ns(&spec));
                printf("%-7s  %6u  %-5g %8.3f %8.3f %8.3f %8.3f  %.6f  %u\n", names[n], sizes[s], losses[i],
                       ideal, times.mean_ms, times.p99_ms, times.worst_ms, times.again, times.messages);
                if (n == 1)
                    continue;
                if (losses[i] <= 1e-4 && times.worst_ms > ideal + 2.5 * ms(RTT_NS))
                    fail_msg("worst of %d at %g is %.3f ms", RUNS, losses[i], times.worst_ms);
                if (losses[i] <= 1e-2 && sizes[s] == 256 && times.p99_ms > 100)
                    fail_msg("p99 at %g is %.3f ms", losses[i], times.p99_ms);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_loss_is_ideal),
        cmocka_unit_test(test_one_lost_chunk_costs_a_round_trip_and_a_window),
        cmocka_unit_test(test_a_lost_repair_costs_the_same_again),
        cmocka_unit_test(test_lost_marks_cost_windows),
        cmocka_unit_test(test_lost_reports_cost_windows),
        cmocka_unit_test(test_silence_is_bridged_by_probes),
        cmocka_unit_test(test_one_lost_chunk_costs_sr_rto_its_timeout),
        cmocka_unit_test(test_always_completes),
        cmocka_unit_test(test_repairs_are_as_many_as_losses),
        cmocka_unit_test(test_a_backlog_on_the_host_is_no_loss),
        cmocka_unit_test(test_completion_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
