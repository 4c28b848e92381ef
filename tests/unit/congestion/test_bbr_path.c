/*
 * test_bbr_path.c - what a packet train says about a path, and whether loss is random or a policer's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/bbr_path.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MTU    4096u
#define RTT_NS 25e6

struct bench {
    struct bbr_train train;
    uint64_t settled;
    struct bbr_train_rate rate;
};

static void setup(struct bench *t, uint64_t bytes)
{
    *t = (struct bench){.settled = 0};
    bbr_train_start(&t->train, MTU, bytes);
}

/* One report of packets that came at a rate; 0: after a pause, so that they have no spacing. */
static void report(struct bench *t, uint32_t packets, double bps, uint64_t rate_bps, bool is_limit,
                   uint32_t lost)
{
    uint64_t bytes = (uint64_t)packets * MTU;
    t->settled += bytes + (uint64_t)lost * MTU;
    struct lh_congestion_feedback f = {.arrived_bytes = bytes,
                                       .train_bytes = bps > 0 ? bytes : 0,
                                       .train_bps = (uint64_t)bps,
                                       .sends_bps = (uint64_t)BBR_TRAIN_BPS,
                                       .rate_bps = rate_bps};
    struct bbr_train_path path = {.settled_bytes = t->settled,
                                  .lost_bytes = (uint64_t)lost * MTU,
                                  .rtt_min = RTT_NS,
                                  .since_start = 2 * RTT_NS,
                                  .is_limit = is_limit};
    t->rate = bbr_train_on_feedback(&t->train, &f, &path);
}

static void test_lengths(void **state)
{
    (void)state;
    struct bench t;
    setup(&t, 0);
    assert_int_equal(t.train.bytes, BBR_TRAIN_BYTES);
    setup(&t, 100001);
    assert_int_equal(t.train.bytes, 25 * MTU);
    bbr_train_start(&t.train, 9000, 0);
    assert_int_equal(t.train.bytes, 90000);
}

/* Sixteen packets, spaced as the path spaces them: its rate is known at the half of them. */
static void test_a_path_that_spaces(void **state)
{
    (void)state;
    struct bench t;
    setup(&t, 0);
    report(&t, 4, 0, 0, true, 0);
    assert_true(t.rate.bps == 0);
    report(&t, 4, 1e9, 0, true, 0);
    assert_true(t.rate.bps == 0);
    report(&t, 4, 1e9, 0, true, 0);
    assert_float_equal(t.rate.bps, 1e9, 1e4);
    assert_true(t.rate.is_of_path);
}

/* As fast as it was sent: the first packets of a sender may be slow, so that a longer train follows. If that
 * comes as fast as it was sent, too, the path may have more. */
static void test_a_path_that_is_not_filled(void **state)
{
    (void)state;
    struct bench t;
    setup(&t, 0);
    for (int part = 0; part < 4; part++) {
        assert_true(t.rate.bps == 0);
        assert_int_equal(t.train.bytes, BBR_TRAIN_BYTES);
        report(&t, 4, part == 0 ? 0 : 30e9, 30000000000u, false, 0);
    }
    assert_true(t.rate.bps == 0);
    assert_int_equal(t.train.bytes, 5 * BBR_TRAIN_BYTES);
    report(&t, 4, 0, 0, false, 0);
    for (int part = 0; part < 3; part++)
        report(&t, 16, 30e9, 30000000000u, false, 0);
    assert_float_equal(t.rate.bps, 3e10, 1e6);
    assert_false(t.rate.is_of_path);
}

/* The second train comes a round trip after the first. That pause of the sender is in the delivery rate, and
 * not in the spacing: the path's, if it is slower than a train, else what may be exceeded. A first train has
 * no such pause, and what comes in less time than it was sent in was held back. */
static void test_a_pause_before_a_train(void **state)
{
    (void)state;
    const double spacings[] = {4e9, 35e9};
    for (int i = 0; i < 2; i++) {
        struct bench t;
        setup(&t, 0);
        report(&t, 4, 0, 0, false, 0);
        for (int part = 1; part < 4; part++)
            report(&t, 4, spacings[i], 3000000000u, false, 0);
        assert_true(t.rate.bps == 0);
        report(&t, 4, 0, 0, false, 0);
        for (int part = 0; part < 3; part++)
            report(&t, 16, spacings[i], 80000000u, false, 0);
        assert_float_equal(t.rate.bps, spacings[i], 1e4);
        assert_true(t.rate.is_of_path == (i == 0));
    }
}

/* A host held the second half back: its parts do not agree, and a longer train follows, twice. The third is
 * judged whatever it shows, and by no more than its slower half. */
static void test_parts_that_disagree(void **state)
{
    (void)state;
    struct bench t;
    setup(&t, 0);
    uint64_t expected = BBR_TRAIN_BYTES;
    for (int train = 0; train < 3; train++) {
        uint32_t packets = (uint32_t)((t.train.bytes - t.settled) / MTU);
        assert_true(t.rate.bps == 0);
        assert_int_equal(t.train.bytes, expected);
        report(&t, 1, 0, 0, true, 0);
        report(&t, packets / 2, 1e9, 0, true, 0);
        report(&t, packets - 1 - packets / 2, 20e9, 0, true, 0);
        expected += 4 * expected;
    }
    assert_float_equal(t.rate.bps, 1e9, 1e5);
    assert_false(t.rate.is_of_path);
}

/* Short messages, one a round trip, are no train: as many bytes again, not four times as many. */
static void test_an_idle_application(void **state)
{
    (void)state;
    struct bench t;
    setup(&t, 0);
    for (int i = 0; i < 16; i++)
        report(&t, 1, 0, 0, false, 0);
    assert_true(t.rate.bps == 0);
    assert_int_equal(t.train.bytes, 2 * BBR_TRAIN_BYTES);
}

/* Most of it lost: the path is too narrow for it, and what came, in the time that it took, is its rate. */
static void test_a_train_that_is_lost(void **state)
{
    (void)state;
    struct bench t;
    setup(&t, 0);
    report(&t, 4, 0, 0, true, 12);
    assert_float_equal(t.rate.bps, 5 * MTU * 8e9 / (2 * RTT_NS), 1e3);
    assert_false(t.rate.is_of_path);
}

/* All in one report, nothing lost: at least that much in a round trip. */
static void test_a_train_in_one_report(void **state)
{
    (void)state;
    struct bench t;
    setup(&t, 0);
    uint32_t packets = 16;
    for (int train = 0; train < 3; train++) {
        assert_true(t.rate.bps == 0);
        report(&t, packets, 0, 0, false, 0);
        packets = (uint32_t)((t.train.bytes - t.settled) / MTU);
    }
    assert_float_equal(t.rate.bps, (320 + 1) * MTU * 8e9 / RTT_NS, 1e4);
}

/* The window cuts a train of a short path in pieces: after three what they brought is a lower bound. */
static void test_a_path_shorter_than_reports(void **state)
{
    (void)state;
    struct bench t;
    setup(&t, 0);
    double since = 0;
    for (int train = 0; train < 3; train++)
        for (int piece = 0; piece < 4; piece++) {
            assert_true(t.rate.bps == 0);
            since += 500e3;
            t.settled += 4 * MTU;
            struct lh_congestion_feedback f = {.arrived_bytes = 4 * MTU,
                                               .sends_bps = (uint64_t)BBR_TRAIN_BPS};
            struct bbr_train_path path = {
                .settled_bytes = t.settled, .rtt_min = 20e3, .since_start = since, .is_limit = false};
            t.rate = bbr_train_on_feedback(&t.train, &f, &path);
        }
    assert_float_equal(t.rate.bps, 48 * MTU * 8e9 / 6e6, 1e4);
    assert_false(t.rate.is_of_path);
}

/* ---- loss ---- */

#define PACKET 1000.0
#define BPS    1e9

/* `packets` sent in a millisecond, that share of them lost. */
static struct bbr_loss_sample sample(double packets, double share)
{
    double arrived = packets * PACKET * (1 - share);
    return (struct bbr_loss_sample){arrived, packets * PACKET * share, arrived, 1e6};
}

static struct bbr_loss found_lossy(double share)
{
    struct bbr_loss loss;
    bbr_loss_start(&loss, (uint32_t)PACKET);
    const struct bbr_loss_sample round = sample(100, share);
    assert_int_equal(bbr_loss_on_cruise(&loss, &round, false, BPS, 10, 0), BBR_LOSS_UNKNOWN);
    return loss;
}

static void test_loss_is_tested_at_half_of_what_arrived(void **state)
{
    (void)state;
    struct bbr_loss loss = found_lossy(0.2);
    assert_float_equal(bbr_loss_test_bps(&loss), 0.5 * 80 * PACKET * 8e9 / 1e6, 1);
    assert_true(loss.share <= 0.01); /* nothing is believed yet */
}

static void test_as_much_at_a_lower_rate_is_random(void **state)
{
    (void)state;
    struct bbr_loss loss = found_lossy(0.2);
    const struct bbr_loss_sample few = sample(30, 0.2), round = sample(140, 0.2);
    assert_int_equal(bbr_loss_on_test(&loss, &few, false, false, BPS, 13, 0), BBR_LOSS_NOTHING);
    assert_int_equal(bbr_loss_on_test(&loss, &round, false, false, BPS, 14, 0), BBR_LOSS_RANDOM);
    assert_float_equal(loss.share, 0.2, 1e-6);
    assert_false(bbr_loss_is_policed(&loss));
    const struct bbr_loss_sample again = sample(100, 0.22);
    assert_int_equal(bbr_loss_on_cruise(&loss, &again, false, BPS, 30, 0), BBR_LOSS_NOTHING);
}

static void test_nothing_at_a_lower_rate_is_a_policer(void **state)
{
    (void)state;
    struct bbr_loss loss = found_lossy(0.2);
    const struct bbr_loss_sample round = sample(170, 0.04);
    assert_int_equal(bbr_loss_on_test(&loss, &round, false, false, BPS, 14, 1000), BBR_LOSS_POLICED);
    assert_float_equal(loss.policed_bps, 80 * PACKET * 8e9 / 1e6, 1);
    assert_float_equal(loss.share, 0.04, 1e-6);
    assert_true(bbr_loss_is_policed(&loss));
}

/* Few packets say neither: a test that an application ends by its silence finds nothing. */
static void test_a_test_that_says_nothing(void **state)
{
    (void)state;
    struct bbr_loss loss = found_lossy(0.2);
    const struct bbr_loss_sample none = sample(4, 0);
    assert_int_equal(bbr_loss_on_test(&loss, &none, false, false, BPS, 13, 0), BBR_LOSS_NOTHING);
    assert_int_equal(bbr_loss_on_test(&loss, &none, true, false, BPS, 50, 0), BBR_LOSS_END);
    assert_false(bbr_loss_is_policed(&loss));
}

/* What is made up for is tested again when packets wait, as it may fill the queue itself. */
static void test_a_queue_makes_random_loss_doubtful(void **state)
{
    (void)state;
    struct bbr_loss loss = found_lossy(0.2);
    const struct bbr_loss_sample round = sample(200, 0.2), lower = sample(200, 0.01);
    assert_int_equal(bbr_loss_on_test(&loss, &round, false, false, BPS, 14, 0), BBR_LOSS_RANDOM);
    assert_int_equal(bbr_loss_on_cruise(&loss, &round, true, BPS, 78, 0), BBR_LOSS_NOTHING);
    assert_int_equal(bbr_loss_on_cruise(&loss, &round, true, BPS, 79, 0), BBR_LOSS_UNKNOWN);
    assert_int_equal(bbr_loss_on_test(&loss, &lower, false, true, BPS, 84, 0), BBR_LOSS_QUEUE);
    assert_float_equal(loss.share, 0.01, 1e-6);
    assert_false(bbr_loss_is_policed(&loss));
}

/* More was sent three times, and neither more arrived nor a queue was seen, where less was lost earlier:
 * others share a policer. Then as much loss at a lower rate proves nothing, until it is as much at half. */
static void test_limits_without_a_queue_raise_doubts(void **state)
{
    (void)state;
    struct bbr_loss loss = found_lossy(0.2);
    const struct bbr_loss_sample round = sample(200, 0.2);
    bbr_loss_end_round(&loss, 300 * PACKET, 0, 10);
    bbr_loss_on_test(&loss, &round, false, false, BPS, 14, 0);
    for (int i = 0; i < 3; i++) {
        assert_float_equal(loss.share, 0.2, 1e-6);
        bbr_loss_on_limit(&loss, false, BPS, 20);
    }
    assert_float_equal(loss.share, 0.05, 1e-6);
    assert_int_equal(bbr_loss_on_cruise(&loss, &round, false, BPS, 30, 0), BBR_LOSS_UNKNOWN);
    assert_int_equal(bbr_loss_on_test(&loss, &round, false, false, BPS, 35, 0), BBR_LOSS_POLICED);
    assert_int_equal(bbr_loss_on_cruise(&loss, &round, false, 0.4 * BPS, 45, 0), BBR_LOSS_UNKNOWN);
    assert_int_equal(bbr_loss_on_test(&loss, &round, false, false, 0.4 * BPS, 50, 0), BBR_LOSS_RANDOM);
    assert_true(bbr_loss_take_restored(&loss) == 0);
}

/* Where as much was lost from the start, it takes more of them; and when the doubt was wrong, the rate is
 * what it was, once. */
static void test_doubts_of_a_loss_that_was_always_there(void **state)
{
    (void)state;
    struct bbr_loss loss = found_lossy(0.2);
    const struct bbr_loss_sample round = sample(200, 0.2);
    bbr_loss_end_round(&loss, 240 * PACKET, 60 * PACKET, 10);
    bbr_loss_on_test(&loss, &round, false, false, BPS, 14, 0);
    for (int i = 0; i < 5; i++) {
        assert_float_equal(loss.share, 0.2, 1e-6);
        bbr_loss_on_limit(&loss, false, BPS, 20);
    }
    assert_float_equal(loss.share, 0.05, 1e-6);
    assert_int_equal(bbr_loss_on_cruise(&loss, &round, false, 0.4 * BPS, 30, 0), BBR_LOSS_UNKNOWN);
    assert_int_equal(bbr_loss_on_test(&loss, &round, false, false, 0.4 * BPS, 35, 0), BBR_LOSS_RANDOM);
    assert_true(bbr_loss_take_restored(&loss) == BPS);
    assert_true(bbr_loss_take_restored(&loss) == 0);
}

/* ---- cohort ---- */

static struct lh_congestion_feedback report_of(uint64_t sent_us, uint64_t packets, uint64_t arrived,
                                               uint64_t spacing_us)
{
    static uint64_t before;
    uint64_t newly = arrived > before ? arrived - before : 0;
    before = arrived;
    return (struct lh_congestion_feedback){
        .rtt_ns = 1000000,
        .sent_ns = sent_us * 1000,
        .passed_total_bytes = packets * (uint64_t)PACKET,
        .arrived_total_bytes = arrived * (uint64_t)PACKET,
        .train_bytes = newly * (uint64_t)PACKET,
        .train_bps = spacing_us > 0 ? newly * (uint64_t)PACKET * 8000000 / spacing_us : 0};
}

/* What left before the span and after it does not count, nor does a pause between. */
static void test_cohort(void **state)
{
    (void)state;
    struct bbr_cohort cohort;
    bbr_cohort_start(&cohort, 100e3, 200e3);
    const struct lh_congestion_feedback reports[] = {
        report_of(90, 900, 800, 50), report_of(110, 1000, 900, 20), report_of(150, 1100, 980, 40),
        report_of(190, 1200, 1060, 60), report_of(250, 1210, 1062, 60)};
    for (int i = 0; i < 5; i++)
        bbr_cohort_on_feedback(&cohort, &reports[i]);
    double mbit = 8 * PACKET / 1e6;
    assert_float_equal((float)(bbr_cohort_sent_bps(&cohort) / 1e6), (float)(200 * mbit / 80e-6), 1);
    double delivered = bbr_cohort_delivered_bps(&cohort) / 1e6; /* a queue grows */
    assert_float_equal((float)delivered, (float)(160 * mbit / 100e-6), 1);
}

static void test_cohort_of_one_report(void **state)
{
    (void)state;
    struct bbr_cohort cohort;
    bbr_cohort_start(&cohort, 100e3, 200e3);
    const struct lh_congestion_feedback report = report_of(110, 1000, 900, 20);
    bbr_cohort_on_feedback(&cohort, &report);
    bbr_cohort_on_feedback(&cohort, &report); /* once more */
    assert_true(bbr_cohort_sent_bps(&cohort) == 0 && bbr_cohort_delivered_bps(&cohort) == 0);
}

/* Of few packets chance loses more or less: what the path delivers is by the share. Unless it is far more. */
static void test_cohort_beside_random_loss(void **state)
{
    (void)state;
    struct bbr_loss loss;
    bbr_loss_start(&loss, (uint32_t)PACKET);
    loss.share = 0.2;
    struct bbr_cohort cohort = {.sent_ns = 1e6, .bytes = 100 * PACKET, .arrived_bytes = 83 * PACKET};
    assert_float_equal(bbr_loss_cohort_bps(&loss, &cohort), 80 * PACKET * 8e3, 1);
    cohort.arrived_bytes = 70 * PACKET;
    assert_float_equal(bbr_loss_cohort_bps(&loss, &cohort), 70 * PACKET * 8e3, 1);
}

/* ---- loss, further ---- */

/* All lost, as a peer may say, or a link that is down: at most half of it is made up for. */
static void test_everything_lost(void **state)
{
    (void)state;
    struct bbr_loss loss = found_lossy(1);
    const struct bbr_loss_sample all = sample(60, 1);
    assert_int_equal(bbr_loss_on_test(&loss, &all, false, false, BPS, 14, 0), BBR_LOSS_RANDOM);
    assert_float_equal(loss.share, 0.5, 1e-6);
}

static void test_what_up_adds_is_lost(void **state)
{
    (void)state;
    struct bbr_loss loss;
    bbr_loss_start(&loss, (uint32_t)PACKET);
    const struct bbr_loss_sample few = sample(100, 0.04), many = sample(100, 0.1);
    assert_int_equal(bbr_loss_on_up(&loss, &few, BPS, 1, 0), BBR_LOSS_NOTHING);
    assert_int_equal(bbr_loss_on_up(&loss, &many, BPS, 2, 0), BBR_LOSS_POLICED);
    assert_float_equal(loss.policed_bps, 90 * PACKET * 8e9 / 1e6, 1);
}

/* 32 round trips and 0.1 s, then an eighth more, and larger steps; twice as long after each probe. */
static void test_a_policer_is_probed_step_by_step(void **state)
{
    (void)state;
    struct bbr_loss loss;
    bbr_loss_start(&loss, (uint32_t)PACKET);
    const struct bbr_loss_sample many = sample(100, 0.1);
    bbr_loss_on_up(&loss, &many, BPS, 0, 0);
    double rate = loss.policed_bps;
    bbr_loss_on_round(&loss, 32, 99000000);
    bbr_loss_on_round(&loss, 31, 101000000);
    assert_true(bbr_loss_is_policed(&loss));
    bbr_loss_on_round(&loss, 32, 101000000);
    assert_false(bbr_loss_is_policed(&loss));
    assert_float_equal((float)loss.max_bps, (float)(1.125 * rate), 100);

    bbr_loss_on_up(&loss, &many, BPS, 40, 110000000);
    assert_true(bbr_loss_is_policed(&loss));
    bbr_loss_on_round(&loss, 80, 220000000);
    assert_true(bbr_loss_is_policed(&loss));
    uint64_t rounds = 104;
    lh_time now = 311000000;
    bbr_loss_on_round(&loss, rounds, now);
    assert_float_equal((float)loss.max_bps, (float)(1.125 * rate), 100);
    bbr_loss_on_round(&loss, rounds += 33, now += 101000000);
    assert_float_equal((float)loss.max_bps, (float)(1.125 * 1.25 * rate), 100);
    for (int step = 0; step < 5; step++)
        bbr_loss_on_round(&loss, rounds += 33, now += 101000000);
    assert_true(loss.max_bps == 0 && loss.policed_bps == 0); /* eight times its rate: gone */
}

/* What a policer drops of a rate that is a little too high lowers the rate, without a test at half of it, and
 * is not taken for random. A few times, or once where it is much: random loss may have begun. */
static void test_a_policer_is_found_exactly(void **state)
{
    (void)state;
    struct bbr_loss loss;
    bbr_loss_start(&loss, (uint32_t)PACKET);
    const struct bbr_loss_sample many = sample(100, 0.1), few = sample(400, 0.005);
    bbr_loss_on_up(&loss, &many, BPS, 0, 0);
    for (int lowered = 0; lowered < 3; lowered++) {
        double rate = loss.policed_bps;
        assert_int_equal(bbr_loss_on_cruise(&loss, &few, false, rate, 10, 0), BBR_LOSS_NOTHING);
        assert_int_equal(bbr_loss_on_cruise(&loss, &few, false, rate, 11, 0), BBR_LOSS_POLICED);
        assert_float_equal((float)loss.policed_bps, (float)(0.995 * rate), 100);
        assert_true(loss.share == 0 && bbr_loss_is_policed(&loss));
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(bbr_loss_on_cruise(&loss, &few, false, BPS, 20, 0), BBR_LOSS_NOTHING);

    bbr_loss_on_up(&loss, &many, BPS, 30, 0);
    double rate = loss.policed_bps;
    loss.cruised = (struct bbr_loss_sample){0};
    assert_int_equal(bbr_loss_on_cruise(&loss, &many, false, rate, 40, 0), BBR_LOSS_POLICED);
    assert_float_equal((float)loss.policed_bps, (float)(0.9 * rate), 100);
    assert_int_equal(bbr_loss_on_cruise(&loss, &many, false, 0.9 * rate, 41, 0), BBR_LOSS_UNKNOWN);
    const struct bbr_loss_sample lower = sample(400, 0.1);
    assert_int_equal(bbr_loss_on_test(&loss, &lower, false, false, 0.9 * rate, 45, 0), BBR_LOSS_RANDOM);
    assert_true(loss.policed_bps == 0);
}

/* A rate far below the policer's, at which packets of a higher one are still lost, is tested. */
static void test_a_lower_rate_is_not_the_policers(void **state)
{
    (void)state;
    struct bbr_loss loss;
    bbr_loss_start(&loss, (uint32_t)PACKET);
    const struct bbr_loss_sample many = sample(100, 0.1);
    bbr_loss_on_up(&loss, &many, BPS, 0, 0);
    double rate = loss.policed_bps;
    assert_int_equal(bbr_loss_on_cruise(&loss, &many, false, rate / 4, 10, 0), BBR_LOSS_UNKNOWN);
    assert_true(loss.policed_bps == rate);
}

/* What the last window of a message loses is reported when no more of it arrives: that is no stall. */
static void test_the_end_of_a_message_is_no_stall(void **state)
{
    (void)state;
    struct bbr_loss loss;
    bbr_loss_start(&loss, (uint32_t)PACKET);
    bbr_loss_end_round(&loss, 900 * PACKET, 50 * PACKET, 1);
    assert_false(bbr_loss_is_stall(&loss, 0, 200 * PACKET));
    bbr_loss_end_round(&loss, 20 * PACKET, 200 * PACKET,
                       2); /* and the next round trip, with half of that */
    assert_false(bbr_loss_is_stall(&loss, 0, 50 * PACKET));
    bbr_loss_end_round(&loss, 10 * PACKET, 0, 3);
    bbr_loss_end_round(&loss, 10 * PACKET, 0, 4);
    assert_true(bbr_loss_is_stall(&loss, 0, 500 * PACKET));
}

/* With random loss what arrives of a round trip's few packets varies: less growth counts. */
static void test_growth_beside_random_loss(void **state)
{
    (void)state;
    struct bbr_loss loss = found_lossy(0.2);
    const struct bbr_loss_sample round = sample(200, 0.2);
    bbr_loss_on_test(&loss, &round, false, false, BPS, 14, 0);
    assert_float_equal((float)bbr_loss_growth(&loss, 1.125, 1e9), 1.075F, 1e-4);
    assert_float_equal((float)bbr_loss_growth(&loss, 1.125, 10000), 1.070F, 1e-4);
    assert_float_equal((float)bbr_loss_growth(&loss, 1.125, 100), 1.050F, 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_a_path_that_spaces),
        cmocka_unit_test(test_a_path_that_is_not_filled),
        cmocka_unit_test(test_a_pause_before_a_train),
        cmocka_unit_test(test_parts_that_disagree),
        cmocka_unit_test(test_an_idle_application),
        cmocka_unit_test(test_a_train_that_is_lost),
        cmocka_unit_test(test_a_train_in_one_report),
        cmocka_unit_test(test_a_path_shorter_than_reports),
        cmocka_unit_test(test_loss_is_tested_at_half_of_what_arrived),
        cmocka_unit_test(test_as_much_at_a_lower_rate_is_random),
        cmocka_unit_test(test_nothing_at_a_lower_rate_is_a_policer),
        cmocka_unit_test(test_a_test_that_says_nothing),
        cmocka_unit_test(test_a_queue_makes_random_loss_doubtful),
        cmocka_unit_test(test_limits_without_a_queue_raise_doubts),
        cmocka_unit_test(test_doubts_of_a_loss_that_was_always_there),
        cmocka_unit_test(test_cohort),
        cmocka_unit_test(test_cohort_of_one_report),
        cmocka_unit_test(test_cohort_beside_random_loss),
        cmocka_unit_test(test_everything_lost),
        cmocka_unit_test(test_what_up_adds_is_lost),
        cmocka_unit_test(test_a_policer_is_probed_step_by_step),
        cmocka_unit_test(test_a_policer_is_found_exactly),
        cmocka_unit_test(test_a_lower_rate_is_not_the_policers),
        cmocka_unit_test(test_the_end_of_a_message_is_no_stall),
        cmocka_unit_test(test_growth_beside_random_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
