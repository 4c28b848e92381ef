/*
 * test_bottleneck.c - each cause that can limit a sender, made once from its times; and its words.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/format/bottleneck.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

/* 2Gbit/s and 25 ms, found by a controller: sending all the time, without a queue. */
static struct bottleneck_times times;
static struct bottleneck_facts facts;
static struct lh_bottleneck_report report;

static int setup(void **state)
{
    (void)state;
    times = (struct bottleneck_times){.cpu_ns = 1};
    facts = (struct bottleneck_facts){.queue_known = true};
    report = (struct lh_bottleneck_report){
        .rate_bps = 2000000000,
        .rate_best_bps = 2000000000,
        .rtt_ns = 25 * LH_NS_PER_MS,
        .window_bytes = 64 * MIB,
        .slots = 64,
        .slot_bytes = 4 * MIB,
    };
    return 0;
}

static void expect(enum lh_bottleneck bottleneck, const char *words)
{
    char text[LH_BOTTLENECK_WORDS_MAX];
    bottleneck_decide(&times, &facts, &report);
    assert_string_equal(lh_bottleneck_name(report.bottleneck), lh_bottleneck_name(bottleneck));
    assert_string_equal(lh_bottleneck_words(&report, text, sizeof text), words);
}

static void nothing_is_known(void **state)
{
    (void)state;
    times.cpu_ns = 0;
    expect(LH_BOTTLENECK_NONE, "nothing known");
    assert_true(report.share == 0);
}

static void the_application(void **state)
{
    (void)state;
    times.message_ns = 25;
    times.acknowledgement_ns = 50;
    times.pace_ns = 74;
    times.cpu_ns = 0;
    expect(LH_BOTTLENECK_APPLICATION, "the application (nothing to send for 50 % of the time: use larger "
                                      "messages, or more in flight)");
    times.pace_ns = 76;
    bottleneck_decide(&times, &facts, &report);
    assert_int_equal(report.bottleneck, LH_BOTTLENECK_PATH);
}

static void a_rate_that_was_given(void **state)
{
    (void)state;
    times.pace_ns = 10;
    facts.given = true;
    expect(LH_BOTTLENECK_RATE, "the given rate (2Gbit/s)");
    facts.given = false;
    facts.at_most = true;
    expect(LH_BOTTLENECK_RATE, "the given rate (2Gbit/s)");
}

/* What was never measured is not there, rather than 0. */
static void numbers_that_are_not_known(void **state)
{
    (void)state;
    times.pace_ns = 10;
    report.rate_bps = report.rate_best_bps = 0;
    expect(LH_BOTTLENECK_PATH, "the path's queue (round trip 25ms + 0ns of queueing)");
    report.rtt_ns = 0;
    expect(LH_BOTTLENECK_PATH, "the path's queue");
    report.rate_bps = 1000000000;
    expect(LH_BOTTLENECK_PATH, "the path's queue (1Gbit/s)");
    report.rate_bps = 0;
    facts.at_most = true;
    expect(LH_BOTTLENECK_RATE, "the given rate");
}

static void an_emulated_link(void **state)
{
    (void)state;
    times.device_ns = 10;
    facts.given = facts.emulated = true;
    expect(LH_BOTTLENECK_RATE, "the emulated link (2Gbit/s)");
}

static void the_paths_queue(void **state)
{
    (void)state;
    times.pace_ns = 10;
    report.queueing_ns = LH_NS_PER_MS / 2;
    expect(LH_BOTTLENECK_PATH, "the path's queue (2Gbit/s, round trip 25ms + 500us of queueing)");
}

static void loss(void **state)
{
    (void)state;
    times.pace_ns = 10;
    report.retransmitted = 0.049;
    bottleneck_decide(&times, &facts, &report);
    assert_int_equal(report.bottleneck, LH_BOTTLENECK_PATH);
    report.retransmitted = 0.071;
    expect(LH_BOTTLENECK_LOSS,
           "loss or reordering (7.1 % retransmitted: use --reliability ec:mds at the receiver)");
    report.coded = true;
    expect(LH_BOTTLENECK_LOSS, "loss or reordering (7.1 % retransmitted: use more parity)");
    /* Waiting for what was lost is no idleness of the application, which has messages pending. */
    times.acknowledgement_ns = 20;
    times.message_ns = 19;
    bottleneck_decide(&times, &facts, &report);
    assert_int_equal(report.bottleneck, LH_BOTTLENECK_LOSS);
    times.message_ns = 21;
    bottleneck_decide(&times, &facts, &report);
    assert_int_equal(report.bottleneck, LH_BOTTLENECK_APPLICATION);
}

/* What a queue or the receiver drops is no loss of the path's; and without feedback nobody knows. */
static void loss_of_another_cause(void **state)
{
    (void)state;
    times.pace_ns = 10;
    report.retransmitted = 0.5;
    report.queueing_ns = facts.standing_ns = 7 * LH_NS_PER_MS;
    bottleneck_decide(&times, &facts, &report);
    assert_int_equal(report.bottleneck, LH_BOTTLENECK_PATH);
    facts.standing_ns = 0; /* jitter */
    bottleneck_decide(&times, &facts, &report);
    assert_int_equal(report.bottleneck, LH_BOTTLENECK_LOSS);
    report.queueing_ns = 0;
    report.receiver_drops = 1;
    bottleneck_decide(&times, &facts, &report);
    assert_int_equal(report.bottleneck, LH_BOTTLENECK_PATH);
    report.receiver_drops = 0;
    facts.queue_known = false;
    bottleneck_decide(&times, &facts, &report);
    assert_int_equal(report.bottleneck, LH_BOTTLENECK_PATH);
    facts.given = true;
    bottleneck_decide(&times, &facts, &report);
    assert_int_equal(report.bottleneck, LH_BOTTLENECK_LOSS);
}

static void a_competing_load(void **state)
{
    (void)state;
    times.pace_ns = 10;
    report.rate_bps = 1000000000;
    report.queueing_ns = 10 * LH_NS_PER_MS;
    facts.standing_ns = 7 * LH_NS_PER_MS;
    expect(LH_BOTTLENECK_COMPETITION,
           "a competing load, or a path that became slower (1Gbit/s of 2Gbit/s, 10ms of queueing)");
    report.rate_bps = 1000000001;
    bottleneck_decide(&times, &facts, &report);
    assert_int_equal(report.bottleneck, LH_BOTTLENECK_PATH);
    report.rate_bps = 1000000000;
    facts.standing_ns = 6 * LH_NS_PER_MS; /* below a quarter of a round trip */
    bottleneck_decide(&times, &facts, &report);
    assert_int_equal(report.bottleneck, LH_BOTTLENECK_PATH);
}

static void the_window(void **state)
{
    (void)state;
    times.window_ns = 10;
    report.window_bytes = 4 * MIB;
    expect(LH_BOTTLENECK_WINDOW, "--window 4MiB (rate x round trip needs 6MiB: --window 8MiB)");
    report.rate_bps = report.rate_best_bps = 0;
    expect(LH_BOTTLENECK_WINDOW, "--window 4MiB (use a larger one)");
    report.rate_bps = report.rate_best_bps = 1000; /* found behind the window: no measure of the path */
    expect(LH_BOTTLENECK_WINDOW, "--window 4MiB (use a larger one)");
}

static void the_slots(void **state)
{
    (void)state;
    times.slots_ns = 10;
    report.slots = 1;
    expect(LH_BOTTLENECK_SLOTS, "--slots 1 of 4MiB (rate x round trip needs 6MiB: --slots 2)");
    report.slot_bytes = 1024; /* 1024 of these are 1 MiB */
    expect(LH_BOTTLENECK_SLOTS, "--slots 1 of 1KiB (use more or larger slots)");
    report.rate_bps = report.rate_best_bps = 0;
    expect(LH_BOTTLENECK_SLOTS, "--slots 1 of 1KiB (use more or larger slots)");
}

static void the_receiver(void **state)
{
    (void)state;
    times.receiver_ns = 10;
    expect(LH_BOTTLENECK_RECEIVER,
           "the receiver (it reads, or posts receives, later than data could arrive)");
    report.receiver_drops = 12;
    report.retransmitted = 0.5;
    expect(LH_BOTTLENECK_RECEIVER, "the receiver's CPU (its sockets dropped 12 packets: raise "
                                   "net.core.rmem_max there, or use --workers)");
}

static void a_pace_that_is_the_receivers(void **state)
{
    (void)state;
    times.pace_ns = 10;
    facts.receiver_slow = true;
    report.receiver_drops = 12;
    expect(LH_BOTTLENECK_RECEIVER, "the receiver's CPU (its sockets dropped 12 packets: raise "
                                   "net.core.rmem_max there, or use --workers)");
    facts.at_most = true;
    expect(LH_BOTTLENECK_RATE, "the given rate (2Gbit/s)");
}

static void this_host(void **state)
{
    (void)state;
    times.cpu_ns = 10;
    times.device_ns = 9;
    expect(LH_BOTTLENECK_HOST, "this host's CPU (use --channels and --workers)");
    times.device_ns = 11;
    expect(LH_BOTTLENECK_HOST, "this host's network device (it takes no more)");
}

static void the_sdr_layers_times_and_the_sending_parts(void **state)
{
    (void)state;
    const lh_time limited_ns[LH_LIMITS] = {
        [LH_LIMIT_IDLE] = 1000,   [LH_LIMIT_HOST] = 1,          [LH_LIMIT_RATE] = 20,
        [LH_LIMIT_WINDOW] = 300,  [LH_LIMIT_USER_WINDOW] = 100, [LH_LIMIT_RECEIVER] = 50000,
        [LH_LIMIT_CREDIT] = 4000, [LH_LIMIT_FABRIC] = 7,
    };
    /* The idle time is split as these are: they are times of another clock. */
    struct tx_waits waits = {.ns = {[TX_WAIT_MESSAGE] = 1,
                                    [TX_WAIT_SDR] = 77777,
                                    [TX_WAIT_ACKNOWLEDGEMENT] = 2,
                                    [TX_WAIT_WINDOW] = 3,
                                    [TX_WAIT_BUFFER] = 1,
                                    [TX_WAIT_SLOTS] = 3,
                                    [TX_WAIT_RECEIVE] = 4}};
    struct bottleneck_times split = bottleneck_times_of(limited_ns, &waits);
    assert_int_equal(split.message_ns, 100);
    assert_int_equal(split.acknowledgement_ns, 200);
    assert_int_equal(split.slots_ns, 300);
    assert_int_equal(split.window_ns, 75);
    assert_int_equal(split.receiver_ns, 50000 + 25 + 400);
    assert_int_equal(split.pace_ns, 4320);
    assert_int_equal(split.device_ns, 7);
    assert_int_equal(split.cpu_ns, 1);
    waits = (struct tx_waits){0};
    split = bottleneck_times_of(limited_ns, &waits);
    assert_int_equal(split.message_ns, 1000);
    assert_int_equal(split.window_ns, 100);
}

static void a_text_is_cut_at_its_size(void **state)
{
    (void)state;
    char text[8];
    times.receiver_ns = 10;
    bottleneck_decide(&times, &facts, &report);
    assert_string_equal(lh_bottleneck_words(&report, text, sizeof text), "the rec");
    assert_string_equal(lh_bottleneck_name((enum lh_bottleneck)99), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_is_known, setup),
        cmocka_unit_test_setup(the_application, setup),
        cmocka_unit_test_setup(a_rate_that_was_given, setup),
        cmocka_unit_test_setup(numbers_that_are_not_known, setup),
        cmocka_unit_test_setup(an_emulated_link, setup),
        cmocka_unit_test_setup(the_paths_queue, setup),
        cmocka_unit_test_setup(loss, setup),
        cmocka_unit_test_setup(loss_of_another_cause, setup),
        cmocka_unit_test_setup(a_competing_load, setup),
        cmocka_unit_test_setup(the_window, setup),
        cmocka_unit_test_setup(the_slots, setup),
        cmocka_unit_test_setup(the_receiver, setup),
        cmocka_unit_test_setup(a_pace_that_is_the_receivers, setup),
        cmocka_unit_test_setup(this_host, setup),
        cmocka_unit_test_setup(the_sdr_layers_times_and_the_sending_parts, setup),
        cmocka_unit_test_setup(a_text_is_cut_at_its_size, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
