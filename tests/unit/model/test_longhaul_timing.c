/*
 * test_longhaul_timing.c - the times of Longhaul's own machines, and chunks of which what arrived stays.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/longhaul_timing.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/repeat_sampler.h"
#include "support/predictions.h"
#include "support/near.h"

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

static struct lh_prng prng;

/* Each packet by itself. */
static double packet_by_packet(const struct model_repeat *repeat, const struct model_loss *loss,
                               unsigned chunks)
{
    double latest = 0;
    for (unsigned behind = 0; behind < chunks; behind++) {
        double most = 0;
        for (double packet = 0; packet < loss->chunk_packets; packet++) {
            double losses = 0;
            while (lh_prng_chance(&prng, loss->packet))
                losses++;
            most = fmax(most, losses);
        }
        latest = fmax(latest, model_repeat_cost(repeat, most) - behind);
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
    lh_prng_seed(&prng, 7);
    for (unsigned i = 0; i < 9; i++) {
        struct model_loss loss = model_loss_of_packets(losses[i / 3], 0, 8);
        model_repeat_start_packets(&repeat, &loss, firsts[i % 3], overheads[i % 3], 60);
        double sums[3] = {0, 0, 0};
        double below = 0;
        double half = model_repeat_quantile(&repeat, 60, 0.9);
        for (unsigned n = 0; n < DRAWS; n++) {
            double slow = packet_by_packet(&repeat, &loss, 60);
            sums[0] += slow;
            sums[1] += model_draw_repeat(&repeat, log(loss.chunk), 60, &prng);
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
    lh_prng_seed(&prng, 8);
    model_repeat_start_packets(&repeat, &rows, 5, 9.25, 60);
    double drawn = 0;
    for (unsigned n = 0; n < DRAWS; n++)
        drawn += model_draw_repeat_bursts(&repeat, &rows, 60, &prng);
    struct model_loss independent = model_loss_of_packets(0.05, 0, 8);
    model_repeat_start_packets(&repeat, &independent, 5, 9.25, 60);
    assert_near(drawn / DRAWS, model_repeat_excess(&repeat, 60), 0.02);
}

int main(void)
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
