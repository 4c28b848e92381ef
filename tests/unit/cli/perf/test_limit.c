/*
 * test_limit.c - when a measurement of longhaul perf was limited by its window.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/perf/limit.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define GBIT 1e9

/* 10 messages of 640 MiB one by one over 100 ms, with a window of 64 MiB: one leaves in each round trip. */
static struct cli_perf_order order = {.iterations = 10, .in_flight = 1};
static struct cli_perf_result result;

static void reset(void)
{
    order = (struct cli_perf_order){.iterations = 10, .in_flight = 1};
    order.attr.link.rate_bps = (uint64_t)(10 * GBIT);
    result = (struct cli_perf_result){
        .size_bytes = 640 * CLI_MIB, .iterations = 10, .rtt_s = 0.1, .p50_s = 10 * 0.1 + 0.1};
    result.agreed.window_bytes = 64 * CLI_MIB;
    result.agreed.slots = 64;
    result.agreed.slot_bytes = 4 * CLI_MIB;
    result.local.tx_bytes = 10 * 640 * CLI_MIB;
}

static void expect_remedy(const char *expected)
{
    char remedy[CLI_PERF_REMEDY_MAX];
    cli_perf_remedy(&order, &result, remedy);
    assert_string_equal(remedy, expected);
}

static void test_a_window_per_round_trip(void **state)
{
    (void)state;
    reset();
    assert_string_equal(cli_perf_limited_by(&order, &result), "window");
    expect_remedy("--window 120MiB fills the link"); /* 125 MB fit on it */
    result.p50_s = 10 * 0.1 / 0.79 + 0.1;
    assert_null(cli_perf_limited_by(&order, &result));
    result.p50_s = 10 * 0.1 / 0.81 + 0.1;
    assert_non_null(cli_perf_limited_by(&order, &result));
}

/* Whatever the times say. */
static void test_a_message_that_fits(void **state)
{
    (void)state;
    reset();
    result.size_bytes = 64 * CLI_MIB;
    result.local.tx_bytes = 10 * 64 * CLI_MIB;
    result.p50_s = 0.1;
    assert_null(cli_perf_limited_by(&order, &result));
    result.p50_s = 0.05; /* shorter than the shortest round trip: not possible, and no reason to divide */
    result.size_bytes = 65 * CLI_MIB;
    assert_null(cli_perf_limited_by(&order, &result));
}

static void test_a_link_that_the_window_fills(void **state)
{
    (void)state;
    reset();
    order.attr.link.rate_bps = (uint64_t)(5 * GBIT); /* 62.5 MB */
    assert_null(cli_perf_limited_by(&order, &result));
    order.attr.link.rate_bps = 0; /* not known: the times decide */
    assert_non_null(cli_perf_limited_by(&order, &result));
    expect_remedy("raise --window");
}

/* Parity takes its part of the window. */
static void test_what_is_sent_besides(void **state)
{
    (void)state;
    reset();
    result.p50_s = 10 * 0.1 * 1.25 + 0.1;
    result.local.tx_bytes = result.local.tx_bytes / 4 * 5;
    assert_non_null(cli_perf_limited_by(&order, &result));
}

static void test_messages_in_flight(void **state)
{
    (void)state;
    reset();
    order.in_flight = 16;
    result.size_bytes = 8 * CLI_MIB;
    result.local.tx_bytes = 10 * 8 * CLI_MIB;
    result.p50_s = 0.3;
    result.goodput_bps = 64.0 * (double)CLI_MIB * 8 / 0.1;
    assert_non_null(cli_perf_limited_by(&order, &result));
    result.goodput_bps /= 2;
    assert_null(cli_perf_limited_by(&order, &result));
    order.in_flight = 8; /* all of them fit */
    result.goodput_bps *= 2;
    assert_null(cli_perf_limited_by(&order, &result));
}

static void test_slots_per_round_trip(void **state)
{
    (void)state;
    reset();
    result.agreed.slots = 2;
    result.p50_s = 80 * 0.1 + 0.1;
    assert_string_equal(cli_perf_limited_by(&order, &result), "window");
    assert_int_equal(cli_perf_in_flight_max(&result), 8 * CLI_MIB);
    expect_remedy("--window 120MiB --slots 32 fills the link");
    result.agreed.window_bytes = 1024 * CLI_MIB;
    expect_remedy("--slots 32 fills the link");
    result.agreed.slot_bytes = CLI_MIB / 16;
    expect_remedy("raise --slot-size, or send larger messages");
    order.attr.link.rate_bps = 0;
    expect_remedy("raise --slots or --slot-size");
}

/* A slot holds one of them. */
static void test_messages_smaller_than_a_slot(void **state)
{
    (void)state;
    reset();
    order.in_flight = 128;
    result.size_bytes = CLI_MIB / 2;
    result.local.tx_bytes = 10 * CLI_MIB / 2;
    result.goodput_bps = 32.0 * (double)CLI_MIB * 8 / 0.1;
    assert_int_equal(cli_perf_in_flight_max(&result), 32 * CLI_MIB);
    assert_non_null(cli_perf_limited_by(&order, &result));
    expect_remedy("--window 120MiB --slots 256 fills the link");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_window_per_round_trip),      cmocka_unit_test(test_a_message_that_fits),
        cmocka_unit_test(test_a_link_that_the_window_fills), cmocka_unit_test(test_what_is_sent_besides),
        cmocka_unit_test(test_messages_in_flight),           cmocka_unit_test(test_slots_per_round_trip),
        cmocka_unit_test(test_messages_smaller_than_a_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
