/*
 * test_predictor.c - collectives: rounds, their bound, and what waiting for each other adds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/model.h>

#include "base/prng.h"
#include "model/predictor.h"
#include "model/repeat_model.h"
#include "support/near.h"
#include "support/predictions.h"

/* ---- test collective ------------------------------------------------------------------------------- */

static const struct lh_model_path collective_path = {.message_bytes = 128 << 20,
                                                     .chunk_bytes = 65536,
                                                     .mtu_bytes = 4096,
                                                     .bandwidth_bps = 400e9,
                                                     .rtt_s = 25e-3,
                                                     .loss = 1e-4};
static double samples[4000];

static struct lh_model_scheme scheme_of(const char *text)
{
    struct lh_model_scheme scheme;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    return scheme;
}

static void test_rounds(void **state)
{
    (void)state;
    assert_int_equal(model_collective_rounds(LH_MODEL_RING_ALLREDUCE, 4), 6);
    assert_int_equal(model_collective_rounds(LH_MODEL_TREE_ALLREDUCE, 2), 2);
    assert_int_equal(model_collective_rounds(LH_MODEL_TREE_ALLREDUCE, 8), 6);
    assert_int_equal(model_collective_rounds(LH_MODEL_TREE_ALLREDUCE, 9), 8);
    assert_int_equal(model_collective_rounds(LH_MODEL_ALL_TO_ALL, 9), 8);
}

/* Nothing is lost: the rounds one after another, each of its part of the buffer. */
static void test_ideal(void **state)
{
    (void)state;
    struct lh_model_scheme scheme = scheme_of("ideal");
    const double bits = 128.0 * (1 << 20) * 8;
    for (uint32_t n = 2; n <= 9; n++) {
        const double wanted[] = {(2 * n - 2) * (ceil(bits / 8 / n) * 8 / 400e9 + 25e-3),
                                 2 * ceil(log2(n)) * (bits / 400e9 + 25e-3),
                                 (n - 1) * (ceil(bits / 8 / n) * 8 / 400e9 + 25e-3)};
        for (unsigned kind = 0; kind < 3; kind++) {
            double ideal;
            double mean;
            assert_int_equal(lh_model_collective_bound(&collective_path, &scheme, kind, n, &ideal, &mean),
                             0);
            assert_near(ideal, wanted[kind], 1e-12);
            assert_near(mean, ideal, 0);
            assert_int_equal(
                lh_model_collective_sample(&collective_path, &scheme, kind, n, 1, 1, samples, 2), 0);
            assert_near(samples[1], ideal, 1e-9);
        }
    }
}

/* Two datacenters in a ring: both wait for the later of two messages, twice. */
static void test_ring_of_two(void **state)
{
    (void)state;
    struct lh_model_scheme scheme = scheme_of("sr-rto");
    struct lh_model_path half = collective_path;
    struct lh_model_summary summary;
    half.message_bytes /= 2;
    /* E of the later of two: the integral of 1 - F^2. */
    double ideal;
    double mean = 0;
    double share = 0;
    for (double at = 0; share < 1 - 1e-9; at += 1e-4) {
        assert_int_equal(lh_model_cdf(&half, &scheme, at + 5e-5, &share), 0);
        mean += (1 - share * share) * 1e-4;
    }
    assert_int_equal(lh_model_collective_sample(&collective_path, &scheme, LH_MODEL_RING_ALLREDUCE, 2, 2, 2,
                                                samples, 4000),
                     0);
    assert_int_equal(lh_model_summarize(samples, 4000, &summary), 0);
    assert_true(fabs(summary.mean_s - 2 * mean) < 4 * summary.mean_error_s + 1e-3 * mean);
    double bound;
    assert_int_equal(
        lh_model_collective_bound(&collective_path, &scheme, LH_MODEL_RING_ALLREDUCE, 2, &ideal, &bound),
        0);
    assert_true(summary.mean_s > bound);
}

/* Appendix C: no mean is below the bound, and the chain of a tree waits for others, too. */
static void test_bound(void **state)
{
    (void)state;
    const char *texts[] = {"sr-rto", "sr-nack", "ec:mds"};
    for (unsigned t = 0; t < 3; t++)
        for (uint32_t n = 2; n <= 8; n += 3)
            for (unsigned kind = 0; kind < 3; kind++) {
                struct lh_model_scheme scheme = scheme_of(texts[t]);
                struct lh_model_summary summary;
                double ideal;
                double bound;
                assert_int_equal(
                    lh_model_collective_bound(&collective_path, &scheme, kind, n, &ideal, &bound), 0);
                assert_int_equal(
                    lh_model_collective_sample(&collective_path, &scheme, kind, n, 3, 2, samples, 1000), 0);
                assert_int_equal(lh_model_summarize(samples, 1000, &summary), 0);
                assert_true(bound >= ideal &&
                            summary.mean_s >= bound * (1 - 1e-9) - 4 * summary.mean_error_s);
                assert_true(summary.p50_s >= ideal * (1 - 1e-9) && summary.p999_s >= summary.p50_s);
            }
}

static void test_refused(void **state)
{
    (void)state;
    struct lh_model_scheme scheme = scheme_of("sr-rto");
    double ideal = 7;
    double mean = 7;
    assert_int_equal(
        lh_model_collective_bound(&collective_path, &scheme, LH_MODEL_ALL_TO_ALL, 1, &ideal, &mean),
        -LH_ERANGE);
    assert_int_equal(
        lh_model_collective_bound(&collective_path, &scheme, LH_MODEL_ALL_TO_ALL, 4097, &ideal, &mean),
        -LH_ERANGE);
    assert_int_equal(
        lh_model_collective_bound(&collective_path, &scheme, (enum lh_model_collective)3, 4, &ideal, &mean),
        -LH_EINVAL);
    struct lh_model_path nonsense = collective_path;
    nonsense.message_bytes = (uint64_t)-1;
    assert_int_equal(lh_model_collective_bound(&nonsense, &scheme, LH_MODEL_ALL_TO_ALL, 4, &ideal, &mean),
                     -LH_ERANGE);
    nonsense.message_bytes = 0;
    assert_int_equal(
        lh_model_collective_sample(&nonsense, &scheme, LH_MODEL_RING_ALLREDUCE, 4, 1, 1, samples, 10),
        -LH_ERANGE);
    assert_near(ideal, 7, 0);
    assert_near(mean, 7, 0);
}

static int run_collective(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds), cmocka_unit_test(test_ideal),   cmocka_unit_test(test_ring_of_two),
        cmocka_unit_test(test_bound),  cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test facts ------------------------------------------------------------------------------------ */

/* Numbers of the paper that need no scheme. */

/* Figure 15 at a packet loss of 10^-5: 1 - (1 - 10^-5)^N. */
static void test_chunk_loss(void **state)
{
    (void)state;
    double loss;
    assert_int_equal(lh_model_chunk_loss(1e-5, 0, 1, &loss), 0);
    assert_near(loss, 1e-5, 1e-12);
    assert_int_equal(lh_model_chunk_loss(1e-5, 1, 16, &loss), 0);
    assert_near(loss, 1.5998800055995e-4, 1e-12);
    assert_int_equal(lh_model_chunk_loss(1e-5, 0, 64, &loss), 0);
    assert_near(loss, 6.3979844164e-4, 1e-9);
    assert_int_equal(lh_model_chunk_loss(1e-5, 64, 64, &loss), 0);
    assert_true(loss > 1e-5 && loss < 3e-5);
    assert_int_equal(lh_model_chunk_loss(0, 0, 64, &loss), 0);
    assert_near(loss, 0, 0);
}

/* Section 3.3.2 says "about 100 ms" of 800 Gbit/s and messages of 16 MiB; 2^10 of them take 172 ms. */
static void test_wraparound(void **state)
{
    (void)state;
    double seconds;
    assert_int_equal(lh_model_wraparound(800e9, 16 << 20, 10, &seconds), 0);
    assert_near(seconds, 0.17179869184, 1e-12);
}

static void facts_test_refused(void **state)
{
    (void)state;
    double value = 7;
    assert_int_equal(lh_model_chunk_loss(-0.1, 0, 1, &value), -LH_ERANGE);
    assert_int_equal(lh_model_chunk_loss(1, 0, 1, &value), -LH_ERANGE);
    assert_int_equal(lh_model_chunk_loss(NAN, 0, 1, &value), -LH_ERANGE);
    assert_int_equal(lh_model_chunk_loss(0.1, 0, 0, &value), -LH_EINVAL);
    assert_int_equal(lh_model_chunk_loss(0.1, NAN, 1, &value), -LH_ERANGE);
    assert_int_equal(lh_model_chunk_loss(0.9, 2, 1, &value), -LH_ERANGE);
    assert_int_equal(lh_model_wraparound(0, 1, 10, &value), -LH_ERANGE);
    assert_int_equal(lh_model_wraparound(NAN, 1, 10, &value), -LH_ERANGE);
    assert_int_equal(lh_model_wraparound(1e9, 0, 10, &value), -LH_ERANGE);
    assert_int_equal(lh_model_wraparound(1e9, (uint64_t)1 << 63, 10, &value), -LH_ERANGE);
    assert_int_equal(lh_model_wraparound(1e9, 1, 0, &value), -LH_ERANGE);
    assert_int_equal(lh_model_wraparound(1e9, 1, 33, &value), -LH_ERANGE);
    assert_near(value, 7, 0);
}

static int run_facts(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunk_loss),
        cmocka_unit_test(test_wraparound),
        cmocka_unit_test(facts_test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test longhaul timing -------------------------------------------------------------------------- */

/* The times of Longhaul's own machines, and chunks of which what arrived stays. */

static struct lh_model_path path_of(uint64_t chunks, double rate_bps, double loss)
{
    return (struct lh_model_path){.message_bytes = chunks * 4096,
                                  .chunk_bytes = 4096,
                                  .mtu_bytes = 4096,
                                  .bandwidth_bps = rate_bps,
                                  .rtt_s = 1e-3,
                                  .loss = loss};
}

static struct model_message terms_of(const struct lh_model_path *path, const char *text,
                                     enum lh_model_timing timing)
{
    struct lh_model_scheme scheme;
    struct model_message message;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    assert_int_equal(scheme.timing, LH_MODEL_TIMING_PAPER);
    scheme.timing = timing;
    assert_int_equal(message_of(path, &scheme, &message), 0);
    return message;
}

static void test_reports_wait_for_a_window(void **state)
{
    (void)state;
    static const char *const asking[] = {"sr-nack", "ec:mds", "ec:xor", "ec:mds,fallback=sr"};
    struct lh_model_path path = path_of(16, 1e9, 1e-3);
    for (unsigned i = 0; i < 4; i++) {
        path.reorder_window_s = 0;
        struct model_message message = terms_of(&path, asking[i], LH_MODEL_TIMING_LONGHAUL);
        assert_near(message.window_s, 125e-6, 1e-12);
        assert_near(message.rto_s, 1125e-6, 1e-12);
        assert_near(message.first_s, 1125e-6, 1e-12);
        path.reorder_window_s = 300e-6; /* as it was measured */
        assert_near(terms_of(&path, asking[i], LH_MODEL_TIMING_LONGHAUL).first_s, 1300e-6, 1e-12);
        assert_near(terms_of(&path, asking[i], LH_MODEL_TIMING_PAPER).window_s, 0, 0);
    }
}

/* 512 KiB are 128 chunks; they are queued at once, and then by 64 whenever 64 have left. */
static void test_timeouts_run_in_the_queue(void **state)
{
    (void)state;
    const uint64_t chunks[] = {16, 128, 129, 192, 193, 256};
    const double waits[] = {16, 128, 65, 128, 65, 128};
    for (unsigned i = 0; i < 6; i++) {
        struct lh_model_path path = path_of(chunks[i], 10e9, 1e-3);
        struct model_message message = terms_of(&path, "sr-rto", LH_MODEL_TIMING_LONGHAUL);
        assert_near(message.first_s, 3e-3 - waits[i] * message.inject_s, 1e-12);
        assert_near(message.rto_s, 3e-3, 1e-12);
        assert_near(terms_of(&path, "sr-rto", LH_MODEL_TIMING_PAPER).first_s, 3e-3, 1e-12);
    }
    struct lh_model_path slow =
        path_of(128, 1e9, 1e-3); /* 4.2 ms in the queue: it waits until overdue, and for an ACK */
    struct model_message message = terms_of(&slow, "sr-rto", LH_MODEL_TIMING_LONGHAUL);
    assert_near(message.first_s, 1375e-6, 1e-9);
}

/* A queue that takes months, and a round trip of a nanosecond: the smaller of the two is not rounded away.
 * */
static void test_a_queue_that_takes_for_ever(void **state)
{
    (void)state;
    struct lh_model_path path = path_of(512, 1e-3, 0.1);
    path.rtt_s = 1.9e-9;
    struct model_message message = terms_of(&path, "sr-rto,alpha=2", LH_MODEL_TIMING_LONGHAUL);
    assert_true(message.first_s >= path.rtt_s);
}

static void test_repairs_take_their_time(void **state)
{
    (void)state;
    struct lh_model_path path = path_of(10000, 10e9, 0.2);
    struct model_message message = terms_of(&path, "sr-nack", LH_MODEL_TIMING_LONGHAUL);
    double before = 10000 * message.inject_s - message.first_s - message.inject_s;
    assert_near(message.repairs_s, before / 4, 1e-12); /* 0.2 + 0.04 + … of the chunks */
    assert_near(terms_of(&path, "sr-nack", LH_MODEL_TIMING_PAPER).repairs_s, 0, 0);
    path.message_bytes = 100 * 4096; /* all is sent before the first report */
    assert_near(terms_of(&path, "sr-nack", LH_MODEL_TIMING_LONGHAUL).repairs_s, 0, 0);
}

/* ---- chunks of packets ------------------------------------------------------------------------------- */

static struct lh_prng longhaul_timing_prng;

/* Each packet by itself. */
static double packet_by_packet(const struct model_repeat *repeat, const struct model_loss *loss,
                               unsigned chunks)
{
    double latest = 0;
    for (unsigned behind = 0; behind < chunks; behind++) {
        double maximum = 0;
        for (double packet = 0; packet < loss->chunk_packets; packet++) {
            double losses = 0;
            while (lh_prng_chance(&longhaul_timing_prng, loss->packet))
                losses++;
            maximum = fmax(maximum, losses);
        }
        latest = fmax(latest, model_repeat_cost(repeat, maximum) - behind);
    }
    return latest;
}

#define DRAWS 20000

static void test_repeat_is_packet_by_packet(void **state)
{
    (void)state;
    static struct model_repeat repeat;
    const double firsts[] = {3.5, 40, 7};
    const double overheads[] = {9.25, 30, 1000};
    const double losses[] = {0.002, 0.05, 0.2};
    lh_prng_seed(&longhaul_timing_prng, 7);
    for (unsigned i = 0; i < 9; i++) {
        struct model_loss loss = model_loss_of_packets(losses[i / 3], 0, 8);
        model_repeat_start_packets(&repeat, &loss, firsts[i % 3], overheads[i % 3], 60);
        double sums[3] = {0, 0, 0};
        double below = 0;
        double half = model_repeat_quantile(&repeat, 60, 0.9);
        for (unsigned n = 0; n < DRAWS; n++) {
            double slow = packet_by_packet(&repeat, &loss, 60);
            sums[0] += slow;
            sums[1] += model_sample_repeat(&repeat, log(loss.chunk), 60, &longhaul_timing_prng);
            sums[2] += slow * slow;
            below += slow <= half * (1 + 1e-9);
        }
        double mean = sums[0] / DRAWS;
        double error = sqrt((sums[2] / DRAWS - mean * mean) / DRAWS);
        assert_true(fabs(sums[1] / DRAWS - mean) < 5 * error);
        assert_true(fabs(model_repeat_excess(&repeat, 60) - mean) < 5 * error);
        assert_true(fabs(below / DRAWS - model_repeat_cdf(&repeat, 60, half)) < 0.012);
    }
}

/* Rows of packets, drawn: where a row is one packet long they are independent. */
static void test_rows_of_packets(void **state)
{
    (void)state;
    static struct model_repeat repeat;
    struct model_loss rows = model_loss_of_packets(0.05, 1 / 0.95, 8);
    lh_prng_seed(&longhaul_timing_prng, 8);
    model_repeat_start_packets(&repeat, &rows, 5, 9.25, 60);
    double sampled = 0;
    for (unsigned n = 0; n < DRAWS; n++)
        sampled += model_sample_repeat_bursts(&repeat, &rows, 60, &longhaul_timing_prng);
    struct model_loss independent = model_loss_of_packets(0.05, 0, 8);
    model_repeat_start_packets(&repeat, &independent, 5, 9.25, 60);
    assert_near(sampled / DRAWS, model_repeat_excess(&repeat, 60), 0.02);
}

static int run_longhaul_timing(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reports_wait_for_a_window),
        cmocka_unit_test(test_timeouts_run_in_the_queue),
        cmocka_unit_test(test_a_queue_that_takes_for_ever),
        cmocka_unit_test(test_repairs_take_their_time),
        cmocka_unit_test(test_repeat_is_packet_by_packet),
        cmocka_unit_test(test_rows_of_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test path estimate ---------------------------------------------------------------------------- */

/* Loss, runs and rate, against values calculated by hand; old and new conditions. */

#define CHUNK 4096u

static void nothing_is_known(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    assert_true(path_estimate_loss(&estimate) == 0);
    assert_true(path_estimate_run_chunks(&estimate) == 1 && path_estimate_run_upper(&estimate) == 1);
    assert_true(path_estimate_rate_bps(&estimate) == 0);
    assert_near(path_estimate_loss_upper(&estimate), 1e-3, 1e-12); /* (0 + 0.5 + 0.5) of 1000 */
}

/* 100 lost in 50 runs of 10,000: 1 %, runs of 2; upper (50.5 + sqrt(50.25)) x 2 / 10,000. */
static void counts(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    for (int i = 0; i < 50; i++)
        path_estimate_on_chunks(&estimate, 200, 2, 1);
    assert_near(path_estimate_loss(&estimate), 0.01, 1e-12);
    assert_near(path_estimate_run_chunks(&estimate), 2, 1e-12);
    assert_near(path_estimate_run_upper(&estimate), 2 + sqrt(2 / 50.0), 1e-12);
    assert_near(path_estimate_loss_upper(&estimate), (50.5 + sqrt(50.25)) * 2 / 10000, 1e-12);
    assert_true(estimate.chunks_seen == 10000 && estimate.chunks_lost == 100);
}

/* Runs of 2.5 chunks: bursts of 2.5 packets where a chunk is one, of 1 + 1.5 x 8 where it has eight. */
static void bursts_of_packets(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    assert_near(path_estimate_burst_packets(&estimate, 8), 1, 1e-12);
    path_estimate_on_chunks(&estimate, 1000, 5, 2);
    assert_near(path_estimate_burst_packets(&estimate, 1), 2.5, 1e-12);
    assert_near(path_estimate_burst_packets(&estimate, 8), 13, 1e-12);
}

/* Without a loss the upper end falls as more is seen, as far as the memory goes. */
static void none_lost_means_more_and_more(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    double before = 1;
    for (uint32_t seen = 0; seen < PATH_ESTIMATE_MEMORY; seen += PATH_ESTIMATE_RECENT) {
        path_estimate_on_chunks(&estimate, PATH_ESTIMATE_RECENT, 0, 0);
        double upper = path_estimate_loss_upper(&estimate);
        if (seen + PATH_ESTIMATE_RECENT < PATH_ESTIMATE_MEMORY)
            assert_true(upper < before && upper > 0);
        before = upper;
    }
    assert_true(before <= 2.0 / PATH_ESTIMATE_MEMORY);
}

static void run(struct path_estimate *estimate, struct lh_prng *prng, double loss, uint32_t chunks)
{
    for (uint32_t i = 0; i < chunks; i++) {
        uint32_t lost = lh_prng_double(prng) < loss;
        path_estimate_on_chunks(estimate, 1, lost, lost);
    }
}

/* Halving forgets, and changes no share and no length of runs. */
static void halving_changes_nothing_else(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    for (uint32_t seen = 0; seen < 4 * PATH_ESTIMATE_MEMORY; seen += PATH_ESTIMATE_RECENT)
        path_estimate_on_chunks(&estimate, PATH_ESTIMATE_RECENT, 30, 10);
    assert_near(path_estimate_loss(&estimate), 30.0 / PATH_ESTIMATE_RECENT, 1e-9);
    assert_near(path_estimate_run_chunks(&estimate), 3, 1e-9);
    assert_true(estimate.known.seen <= PATH_ESTIMATE_MEMORY);
}

/* The model takes shares below 1, and no code helps against more than half. */
static void not_more_than_half_is_planned_for(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    path_estimate_on_chunks(&estimate, 2000, 1999, 3);
    assert_true(path_estimate_loss_upper(&estimate) == 0.5);
}

/* What was long true is given up within two rounds when it is not true any more, both ways. */
static void a_path_that_changes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct path_estimate estimate;
        struct lh_prng prng;
        lh_prng_seed(&prng, seed);
        path_estimate_init(&estimate);
        run(&estimate, &prng, 1e-5, 200000);
        assert_true(path_estimate_loss(&estimate) < 1e-4);
        run(&estimate, &prng, 0.02, 2 * PATH_ESTIMATE_RECENT);
        assert_true(path_estimate_loss(&estimate) > 0.01);
        run(&estimate, &prng, 0.02, 100000);
        assert_near(path_estimate_loss(&estimate), 0.02, 0.15);
        run(&estimate, &prng, 0, 2 * PATH_ESTIMATE_RECENT);
        assert_true(path_estimate_loss(&estimate) < 0.011);
        run(&estimate, &prng, 0, 4 * PATH_ESTIMATE_RECENT);
        assert_true(path_estimate_loss(&estimate) < 0.002);
    }
}

/* And what did not change is kept: a steady path is not given up by chance. */
static void a_path_that_does_not(void **state)
{
    (void)state;
    static const double losses[] = {1e-4, 1e-3, 1e-2, 0.1};
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        struct path_estimate estimate;
        struct lh_prng prng;
        lh_prng_seed(&prng, 7);
        path_estimate_init(&estimate);
        run(&estimate, &prng, losses[i], PATH_ESTIMATE_MEMORY - 1);
        double expected = losses[i] * PATH_ESTIMATE_MEMORY;
        assert_near(path_estimate_loss(&estimate), losses[i], 4 / sqrt(expected));
        assert_true(path_estimate_loss_upper(&estimate) > losses[i] * (1 - 3 / sqrt(expected)));
    }
}

/* 8 chunks a ms are 262 Mbit/s. The first look counts nothing, and no pause does. */
static void rate(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    lh_time now = LH_NS_PER_S, pause = 5 * LH_NS_PER_MS;
    for (int burst = 0; burst < 10; burst++) {
        path_estimate_on_arrivals(&estimate, now, 100, 100 * CHUNK, pause); /* whenever these came */
        for (int i = 0; i < 20; i++) {
            now += LH_NS_PER_MS;
            path_estimate_on_arrivals(&estimate, now, 8, 8 * CHUNK, pause);
        }
        now += pause + 1 + (lh_time)burst * LH_NS_PER_S;
    }
    assert_near(path_estimate_rate_bps(&estimate), 8 * CHUNK * 8 * 1e3, 1e-9);
}

/* Four busy seconds at 1 Gbit/s are nearly forgotten after ten at 100 Mbit/s; the way back is as short. */
static void rate_changes(void **state)
{
    (void)state;
    static const struct {
        uint32_t chunks; /* a ms */
        uint32_t ms;
    } phases[] = {{32, 4000}, {4, 10000}, {32, 10000}};
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    lh_time now = LH_NS_PER_S;
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        uint32_t chunks = phases[i].chunks;
        for (uint32_t ms = 0; ms < phases[i].ms; ms++, now += LH_NS_PER_MS)
            path_estimate_on_arrivals(&estimate, now, chunks, (uint64_t)chunks * CHUNK, 5 * LH_NS_PER_MS);
        assert_near(path_estimate_rate_bps(&estimate), chunks * CHUNK * 8 * 1e3, 0.1);
    }
}

/* A stall shorter than a pause is part of the time, and what waited comes at once: the mean is right. */
static void a_stall_does_not_make_it_faster(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    lh_time now = LH_NS_PER_S, pause = 5 * LH_NS_PER_MS;
    path_estimate_on_arrivals(&estimate, now, 1, CHUNK, pause);
    for (int i = 0; i < 100; i++) {
        bool stalled = i % 10 >= 7; /* three of ten ms nothing is looked at */
        now += LH_NS_PER_MS;
        if (!stalled)
            path_estimate_on_arrivals(&estimate, now, i % 10 == 0 ? 32 : 8, (i % 10 == 0 ? 32 : 8) * CHUNK,
                                      pause);
    }
    assert_near(path_estimate_rate_bps(&estimate), 8 * CHUNK * 8 * 1e3, 0.1);
}

/* A few chunks that come after all others are repairs, and tell nothing. */
static void repairs_tell_no_rate(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    lh_time pause = 5 * LH_NS_PER_MS;
    for (lh_time i = 1; i <= 50; i++) {
        lh_time now = i * 100 * LH_NS_PER_MS;
        path_estimate_on_arrivals(&estimate, now, 1, CHUNK, pause);
        path_estimate_on_arrivals(&estimate, now + LH_NS_PER_MS, PATH_ESTIMATE_PERIOD - 1,
                                  (PATH_ESTIMATE_PERIOD - 1) * CHUNK, pause);
    }
    assert_true(path_estimate_rate_bps(&estimate) == 0);
}

/* A second at 1 Gbit/s, and in the next one its repairs at a tenth of that, again and again. */
static void slow_repairs_do_not_make_it_slower(void **state)
{
    (void)state;
    struct path_estimate estimate;
    path_estimate_init(&estimate);
    lh_time now = LH_NS_PER_S;
    for (uint32_t ms = 0; ms < 20000; ms++, now += LH_NS_PER_MS) {
        uint32_t chunks = ms / 1000 % 2 ? 3 : 32;
        path_estimate_on_arrivals(&estimate, now, chunks, (uint64_t)chunks * CHUNK, 5 * LH_NS_PER_MS);
    }
    assert_near(path_estimate_rate_bps(&estimate), 32 * CHUNK * 8 * 1e3, 0.01);
}

static int run_path_estimate(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known),
        cmocka_unit_test(counts),
        cmocka_unit_test(bursts_of_packets),
        cmocka_unit_test(none_lost_means_more_and_more),
        cmocka_unit_test(halving_changes_nothing_else),
        cmocka_unit_test(not_more_than_half_is_planned_for),
        cmocka_unit_test(a_path_that_changes),
        cmocka_unit_test(a_path_that_does_not),
        cmocka_unit_test(rate),
        cmocka_unit_test(rate_changes),
        cmocka_unit_test(a_stall_does_not_make_it_faster),
        cmocka_unit_test(repairs_tell_no_rate),
        cmocka_unit_test(slow_repairs_do_not_make_it_slower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_collective() + run_facts() + run_longhaul_timing() + run_path_estimate();
}
