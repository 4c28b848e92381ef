/*
 * test_bottleneck.c - each cause that can limit a sender, made once from its times; and its words.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/connection.h>

#include "message/bottleneck.h"

/* ---- test bottleneck ------------------------------------------------------------------------------- */

#define MIB ((uint64_t)1 << 20)

/* 2Gbit/s and 25 ms, found by a controller: sending all the time, without a queue. */
static struct bottleneck_times times;
static struct bottleneck_facts test_bottleneck_facts;
static struct lh_bottleneck_report bottleneck_report;

static int setup(void **state)
{
    (void)state;
    times = (struct bottleneck_times){.cpu_ns = 1};
    test_bottleneck_facts = (struct bottleneck_facts){.queue_known = true};
    bottleneck_report = (struct lh_bottleneck_report){
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
    bottleneck_decide(&times, &test_bottleneck_facts, &bottleneck_report);
    assert_string_equal(lh_bottleneck_name(bottleneck_report.bottleneck), lh_bottleneck_name(bottleneck));
    assert_string_equal(lh_bottleneck_words(&bottleneck_report, text, sizeof text), words);
}

static void nothing_is_known(void **state)
{
    (void)state;
    times.cpu_ns = 0;
    expect(LH_BOTTLENECK_NONE, "nothing known");
    assert_true(bottleneck_report.share == 0);
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
    bottleneck_decide(&times, &test_bottleneck_facts, &bottleneck_report);
    assert_int_equal(bottleneck_report.bottleneck, LH_BOTTLENECK_PATH);
}

static void a_rate_that_was_given(void **state)
{
    (void)state;
    times.pace_ns = 10;
    test_bottleneck_facts.given = true;
    expect(LH_BOTTLENECK_RATE, "the given rate (2Gbit/s)");
    test_bottleneck_facts.given = false;
    test_bottleneck_facts.at_most = true;
    expect(LH_BOTTLENECK_RATE, "the given rate (2Gbit/s)");
}

/* What was never measured is not there, rather than 0. */
static void numbers_that_are_not_known(void **state)
{
    (void)state;
    times.pace_ns = 10;
    bottleneck_report.rate_bps = bottleneck_report.rate_best_bps = 0;
    expect(LH_BOTTLENECK_PATH, "the path's queue (round trip 25ms + 0ns of queueing)");
    bottleneck_report.rtt_ns = 0;
    expect(LH_BOTTLENECK_PATH, "the path's queue");
    bottleneck_report.rate_bps = 1000000000;
    expect(LH_BOTTLENECK_PATH, "the path's queue (1Gbit/s)");
    bottleneck_report.rate_bps = 0;
    test_bottleneck_facts.at_most = true;
    expect(LH_BOTTLENECK_RATE, "the given rate");
}

static void an_emulated_link(void **state)
{
    (void)state;
    times.device_ns = 10;
    test_bottleneck_facts.given = test_bottleneck_facts.emulated = true;
    expect(LH_BOTTLENECK_RATE, "the emulated link (2Gbit/s)");
}

static void the_paths_queue(void **state)
{
    (void)state;
    times.pace_ns = 10;
    bottleneck_report.queueing_ns = LH_NS_PER_MS / 2;
    expect(LH_BOTTLENECK_PATH, "the path's queue (2Gbit/s, round trip 25ms + 500us of queueing)");
}

static void loss(void **state)
{
    (void)state;
    times.pace_ns = 10;
    bottleneck_report.retransmitted = 0.049;
    bottleneck_decide(&times, &test_bottleneck_facts, &bottleneck_report);
    assert_int_equal(bottleneck_report.bottleneck, LH_BOTTLENECK_PATH);
    bottleneck_report.retransmitted = 0.071;
    expect(LH_BOTTLENECK_LOSS,
           "loss or reordering (7.1 % retransmitted: use --reliability hybrid at the receiver)");
    bottleneck_report.coded = true;
    expect(LH_BOTTLENECK_LOSS, "loss or reordering (7.1 % retransmitted, although parity was sent)");
    /* Waiting for what was lost is no idleness of the application, which has messages pending. */
    times.acknowledgement_ns = 20;
    times.message_ns = 19;
    bottleneck_decide(&times, &test_bottleneck_facts, &bottleneck_report);
    assert_int_equal(bottleneck_report.bottleneck, LH_BOTTLENECK_LOSS);
    times.message_ns = 21;
    bottleneck_decide(&times, &test_bottleneck_facts, &bottleneck_report);
    assert_int_equal(bottleneck_report.bottleneck, LH_BOTTLENECK_APPLICATION);
}

/* What a queue or the receiver drops is no loss of the path's; and without feedback nobody knows. */
static void loss_of_another_cause(void **state)
{
    (void)state;
    times.pace_ns = 10;
    bottleneck_report.retransmitted = 0.5;
    bottleneck_report.queueing_ns = test_bottleneck_facts.standing_ns = 7 * LH_NS_PER_MS;
    bottleneck_decide(&times, &test_bottleneck_facts, &bottleneck_report);
    assert_int_equal(bottleneck_report.bottleneck, LH_BOTTLENECK_PATH);
    test_bottleneck_facts.standing_ns = 0; /* jitter */
    bottleneck_decide(&times, &test_bottleneck_facts, &bottleneck_report);
    assert_int_equal(bottleneck_report.bottleneck, LH_BOTTLENECK_LOSS);
    bottleneck_report.queueing_ns = 0;
    bottleneck_report.receiver_drops = 1;
    bottleneck_decide(&times, &test_bottleneck_facts, &bottleneck_report);
    assert_int_equal(bottleneck_report.bottleneck, LH_BOTTLENECK_PATH);
    bottleneck_report.receiver_drops = 0;
    test_bottleneck_facts.queue_known = false;
    bottleneck_decide(&times, &test_bottleneck_facts, &bottleneck_report);
    assert_int_equal(bottleneck_report.bottleneck, LH_BOTTLENECK_PATH);
    test_bottleneck_facts.given = true;
    bottleneck_decide(&times, &test_bottleneck_facts, &bottleneck_report);
    assert_int_equal(bottleneck_report.bottleneck, LH_BOTTLENECK_LOSS);
}

/* A controller that tells random loss from its own: only the former is the path's. */
static void loss_that_the_controller_explains(void **state)
{
    (void)state;
    times.pace_ns = 10;
    bottleneck_report.retransmitted = 0.1;
    test_bottleneck_facts.loss_known = true;
    test_bottleneck_facts.random_loss = 0.02;
    bottleneck_decide(&times, &test_bottleneck_facts, &bottleneck_report);
    assert_int_equal(bottleneck_report.bottleneck, LH_BOTTLENECK_PATH);
    test_bottleneck_facts.random_loss = 0.1;
    bottleneck_decide(&times, &test_bottleneck_facts, &bottleneck_report);
    assert_int_equal(bottleneck_report.bottleneck, LH_BOTTLENECK_LOSS);
    test_bottleneck_facts.random_loss = 0;
    bottleneck_report.policed_rate_bps = 190000000;
    expect(LH_BOTTLENECK_PATH, "a policer on the path, which drops what exceeds 190Mbit/s");
}

/* Idle time is shared by what the sender waited for meanwhile. */
static void idle_time_is_shared(void **state)
{
    (void)state;
    const lh_time limited[LH_LIMITS] = {[LH_LIMIT_IDLE] = 1000, [LH_LIMIT_USER_WINDOW] = 100};
    const struct tx_waits waits = {.ns = {[TX_WAIT_MESSAGE] = 50,
                                          [TX_WAIT_ACKNOWLEDGEMENT] = 10,
                                          [TX_WAIT_SLOTS] = 10,
                                          [TX_WAIT_RECEIVE] = 30,
                                          [TX_WAIT_BUFFER] = 1,
                                          [TX_WAIT_WINDOW] = 3}};
    struct bottleneck_times shared = bottleneck_times_of(limited, &waits);
    assert_int_equal(shared.message_ns, 500);
    assert_int_equal(shared.acknowledgement_ns, 100);
    assert_int_equal(shared.slots_ns, 100);
    assert_int_equal(shared.receiver_ns, 300 + 25);
    assert_int_equal(shared.window_ns, 75);
    const struct tx_waits none = {.ns = {0}};
    shared = bottleneck_times_of(limited, &none);
    assert_int_equal(shared.message_ns,
                     1000); /* a sender that has waited for nothing had nothing to send */
    assert_int_equal(shared.acknowledgement_ns + shared.slots_ns + shared.receiver_ns, 0);
    assert_int_equal(shared.window_ns, 100);
}

static void a_competing_load(void **state)
{
    (void)state;
    times.pace_ns = 10;
    bottleneck_report.rate_bps = 1000000000;
    bottleneck_report.queueing_ns = 10 * LH_NS_PER_MS;
    test_bottleneck_facts.standing_ns = 7 * LH_NS_PER_MS;
    expect(LH_BOTTLENECK_COMPETITION,
           "a competing load, or a path that became slower (1Gbit/s of 2Gbit/s, 10ms of queueing)");
    bottleneck_report.rate_bps = 1000000001;
    bottleneck_decide(&times, &test_bottleneck_facts, &bottleneck_report);
    assert_int_equal(bottleneck_report.bottleneck, LH_BOTTLENECK_PATH);
    bottleneck_report.rate_bps = 1000000000;
    test_bottleneck_facts.standing_ns = 6 * LH_NS_PER_MS; /* below a quarter of a round trip */
    bottleneck_decide(&times, &test_bottleneck_facts, &bottleneck_report);
    assert_int_equal(bottleneck_report.bottleneck, LH_BOTTLENECK_PATH);
}

static void the_window(void **state)
{
    (void)state;
    times.window_ns = 10;
    bottleneck_report.window_bytes = 4 * MIB;
    expect(LH_BOTTLENECK_WINDOW, "--window 4MiB (rate x round trip needs 6MiB: --window 8MiB)");
    bottleneck_report.rate_bps = bottleneck_report.rate_best_bps = 0;
    expect(LH_BOTTLENECK_WINDOW, "--window 4MiB (use a larger one)");
    bottleneck_report.rate_bps = bottleneck_report.rate_best_bps =
        1000; /* found behind the window: no measure of the path */
    expect(LH_BOTTLENECK_WINDOW, "--window 4MiB (use a larger one)");
}

static void the_slots(void **state)
{
    (void)state;
    times.slots_ns = 10;
    bottleneck_report.slots = 1;
    expect(LH_BOTTLENECK_SLOTS, "--slots 1 of 4MiB (rate x round trip needs 6MiB: --slots 2)");
    bottleneck_report.slot_bytes = 1024; /* 1024 of these are 1 MiB */
    expect(LH_BOTTLENECK_SLOTS, "--slots 1 of 1KiB (use more or larger slots)");
    bottleneck_report.rate_bps = bottleneck_report.rate_best_bps = 0;
    expect(LH_BOTTLENECK_SLOTS, "--slots 1 of 1KiB (use more or larger slots)");
}

static void the_receiver(void **state)
{
    (void)state;
    times.receiver_ns = 10;
    expect(LH_BOTTLENECK_RECEIVER, "the receiver (it reads, or posts receives, too late)");
    bottleneck_report.receiver_drops = 12;
    bottleneck_report.retransmitted = 0.5;
    expect(LH_BOTTLENECK_RECEIVER, "the receiver's CPU (its sockets dropped 12 packets: raise "
                                   "net.core.rmem_max there, or use --workers)");
}

static void a_pace_that_is_the_receivers(void **state)
{
    (void)state;
    times.pace_ns = 10;
    test_bottleneck_facts.receiver_slow = true;
    bottleneck_report.receiver_drops = 12;
    expect(LH_BOTTLENECK_RECEIVER, "the receiver's CPU (its sockets dropped 12 packets: raise "
                                   "net.core.rmem_max there, or use --workers)");
    test_bottleneck_facts.at_most = true;
    expect(LH_BOTTLENECK_RATE, "the given rate (2Gbit/s)");
}

static void this_host(void **state)
{
    (void)state;
    times.cpu_ns = 10;
    times.device_ns = 9;
    expect(LH_BOTTLENECK_HOST, "this host's CPU (no processor is left for more --workers)");
    bottleneck_report.processor_left = true;
    expect(LH_BOTTLENECK_HOST, "this host's CPU (use --channels and --workers)");
    times.device_ns = 11;
    expect(LH_BOTTLENECK_HOST, "this host's network device (its queue is full)");
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
    bottleneck_decide(&times, &test_bottleneck_facts, &bottleneck_report);
    assert_string_equal(lh_bottleneck_words(&bottleneck_report, text, sizeof text), "the rec");
    assert_string_equal(lh_bottleneck_name((enum lh_bottleneck)99), "unknown");
}

static int run_bottleneck(void)
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
        cmocka_unit_test_setup(loss_that_the_controller_explains, setup),
        cmocka_unit_test_setup(idle_time_is_shared, setup),
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

/* ---- test scheme format ---------------------------------------------------------------------------- */

/* What auto chose, in words: what was not measured yet is no number. */

static struct lh_scheme_report report;

static int scheme_format_setup(void **state)
{
    (void)state;
    report = (struct lh_scheme_report){.automatic = true,
                                       .message_bytes = (uint64_t)1 << 20,
                                       .rtt_ns = 25 * LH_NS_PER_MS,
                                       .chunks_seen = 1000};
    snprintf(report.scheme, sizeof report.scheme, "sr-nack");
    return 0;
}

static void scheme_format_expect(const char *words)
{
    char text[LH_SCHEME_WORDS_MAX];
    assert_string_equal(lh_scheme_report_words(&report, text, sizeof text), words);
}

static void test_known(void **state)
{
    (void)state;
    scheme_format_expect(
        "sr-nack until something is lost; round trip 25ms, a rate not known yet, none of 1000 chunks lost");
    report.rate_bps = 1e9;
    report.plans = 3;
    report.chunks_lost = 10;
    report.run_chunks = 1.5;
    report.chunk_loss_planned = 0.01;
    report.expected_s = 0.04;
    scheme_format_expect(
        "sr-nack for messages of 1MiB: 40ms expected; round trip 25ms, 1Gbit/s, 10 of 1000 chunks lost in "
        "runs of 1.5, planned for 1.0e-02");
    report.automatic = false;
    scheme_format_expect("sr-nack, as requested");
}

static void test_not_measured(void **state)
{
    (void)state;
    report.rtt_ns = 0;
    report.chunks_seen = 0;
    scheme_format_expect(
        "sr-nack until something is lost; round trip not known yet, no chunk received yet");
    snprintf(report.scheme, sizeof report.scheme, "ec:mds");
    scheme_format_expect("ec:mds until the path is known; round trip not known yet, no chunk received yet");
    snprintf(report.scheme, sizeof report.scheme, "sr-nack");
    report.chunks_seen = 1000;
    report.chunks_lost = 10; /* and no plan since */
    report.run_chunks = 1;
    scheme_format_expect(
        "sr-nack for messages of 1MiB, not planned yet; round trip not known yet, a rate not known yet, "
        "10 of "
        "1000 chunks lost in runs of 1.0");
}

static int run_scheme_format(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_known, scheme_format_setup),
                                       cmocka_unit_test_setup(test_not_measured, scheme_format_setup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test warning ---------------------------------------------------------------------------------- */

static const lh_time warning_rtt_ns = 25 * LH_NS_PER_MS;

/* 2 Gbit/s x 25 ms: 6.25 MB. */
static struct lh_attr attr_of(uint64_t window_bytes, uint32_t slots, uint64_t slot_bytes)
{
    return (struct lh_attr){.mtu_bytes = 4096,
                            .rate_bps = 2000000000,
                            .window_bytes = window_bytes,
                            .slots = slots,
                            .slot_bytes = slot_bytes};
}

static uint32_t packet_bytes = 4096;

static void warning_expect(const struct lh_attr *attr, lh_time rtt, const char *fabric, const char *text)
{
    char out[WARNING_MAX];
    const struct warning_facts facts = {fabric, rtt, packet_bytes};
    const char *warning = warning_format(attr, &facts, out);
    if (!text)
        assert_null(warning);
    else if (!warning || !strstr(warning, text))
        fail_msg("\"%s\" in: %s", text, warning ? warning : "(none)");
}

static void test_of_the_window(void **state)
{
    (void)state;
    struct lh_attr attr = attr_of(6250000, 64, 4 * MIB);
    warning_expect(&attr, warning_rtt_ns, NULL, NULL);
    attr.window_bytes--;
    warning_expect(&attr, warning_rtt_ns, NULL, "(use --window 6MiB)");
    attr.window_bytes = 3125000;
    warning_expect(&attr, warning_rtt_ns, NULL, "at most 50 % of the rate");
    warning_expect(&attr, 0, NULL, NULL);
    attr.rate_bps = 0;
    warning_expect(&attr, warning_rtt_ns, NULL, NULL);
}

static void test_of_the_slots(void **state)
{
    (void)state;
    struct lh_attr attr = attr_of(64 * MIB, 4, MIB);
    warning_expect(&attr, warning_rtt_ns, NULL, "(use --slots 8)");
    attr.window_bytes = MIB;
    warning_expect(&attr, warning_rtt_ns, NULL, "(use --window 6MiB --slots 8)");
    attr.slot_bytes = 1024;
    warning_expect(&attr, warning_rtt_ns, NULL, "(use --window 6MiB --slot-size larger)");
}

/* The smaller of both is what is sent. */
static void test_of_the_link(void **state)
{
    (void)state;
    struct lh_attr attr = attr_of(MIB, 64, 4 * MIB);
    attr.link.rate_bps = 100000000;
    warning_expect(&attr, warning_rtt_ns, NULL, NULL);
    attr.rate_bps = 0;
    warning_expect(&attr, 4 * warning_rtt_ns, NULL, "--window 2MiB");
}

static void test_with_that_of_the_fabric(void **state)
{
    (void)state;
    struct lh_attr attr = attr_of(64 * MIB, 64, 4 * MIB);
    warning_expect(&attr, warning_rtt_ns, "small buffers", "small buffers");
    attr.window_bytes = MIB;
    warning_expect(&attr, warning_rtt_ns, "small buffers", "small buffers; window of 1MiB");
}

static void test_of_the_path_mtu(void **state)
{
    (void)state;
    struct lh_attr attr = attr_of(64 * MIB, 64, 4 * MIB);
    warning_expect(&attr, warning_rtt_ns, NULL, NULL);
    packet_bytes = 1024;
    warning_expect(&attr, warning_rtt_ns, NULL,
                   "packets of MTU 4096 no longer pass the path: each is sent as 4 pieces of 1024 bytes");
    warning_expect(&attr, warning_rtt_ns, NULL, "use --mtu 1024)");
    attr.window_bytes = MIB;
    warning_expect(&attr, warning_rtt_ns, "small buffers", "small buffers; packets of MTU 4096");
    warning_expect(&attr, warning_rtt_ns, "small buffers", "--mtu 1024); window of 1MiB");
    packet_bytes = 4096;
}

static int run_warning(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_the_window),   cmocka_unit_test(test_of_the_slots),
        cmocka_unit_test(test_of_the_link),     cmocka_unit_test(test_with_that_of_the_fabric),
        cmocka_unit_test(test_of_the_path_mtu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_bottleneck() + run_scheme_format() + run_warning();
}
