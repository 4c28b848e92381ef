/*
 * test_rx_state.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "message/rx_state.h"

/* ---- test auto deadline ---------------------------------------------------------------------------- */

#define LIMIT (10 * LH_NS_PER_S)
#define SIZE  1000000u

static void test_begins_far_away(void **state)
{
    (void)state;
    struct auto_deadline automatic = {0};
    assert_int_equal(auto_deadline_of(&automatic, SIZE, 0, LIMIT), LH_NS_PER_S);
    assert_int_equal(auto_deadline_of(&automatic, UINT64_MAX, LIMIT, LIMIT), LH_NS_PER_S);
}

static void test_settles_above_what_messages_take(void **state)
{
    (void)state;
    struct auto_deadline automatic = {0};
    for (int i = 0; i < 50; i++)
        auto_deadline_on_end(&automatic, 8 * LH_NS_PER_MS, SIZE);
    lh_time ns = auto_deadline_of(&automatic, SIZE, LH_NS_PER_MS, LIMIT);
    assert_in_range(ns, 12 * LH_NS_PER_MS, 12 * LH_NS_PER_MS + 100 * LH_NS_PER_US);
    /* A path of half the rate: what is cut off counts as slow, so it grows. */
    for (int i = 0; i < 20; i++) {
        ns = auto_deadline_of(&automatic, SIZE, LH_NS_PER_MS, LIMIT);
        lh_time took = ns < 16 * LH_NS_PER_MS ? ns : 16 * LH_NS_PER_MS;
        auto_deadline_on_end(&automatic, took, (uint64_t)SIZE * took / (16 * LH_NS_PER_MS));
    }
    assert_true(auto_deadline_of(&automatic, SIZE, LH_NS_PER_MS, LIMIT) > 16 * LH_NS_PER_MS);
}

static void test_nothing_at_all_doubles_it(void **state)
{
    (void)state;
    struct auto_deadline automatic = {0};
    auto_deadline_on_end(&automatic, 8 * LH_NS_PER_MS, SIZE);
    lh_time before = auto_deadline_of(&automatic, SIZE, 0, LIMIT);
    auto_deadline_on_end(&automatic, before, 0);
    assert_in_range(auto_deadline_of(&automatic, SIZE, 0, LIMIT), 2 * before - 1, 2 * before + 1);
    for (int i = 0; i < 100; i++)
        auto_deadline_on_end(&automatic, before, 0);
    assert_in_range(auto_deadline_of(&automatic, SIZE, 0, LIMIT), before, LIMIT);
    auto_deadline_on_end(&automatic, 8 * LH_NS_PER_MS, SIZE);
    assert_in_range(auto_deadline_of(&automatic, SIZE, 0, LIMIT), before - 1, before + 1);
}

static int run_auto_deadline(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_begins_far_away),
        cmocka_unit_test(test_settles_above_what_messages_take),
        cmocka_unit_test(test_nothing_at_all_doubles_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test data path -------------------------------------------------------------------------------- */

#define MTU        1024u
#define OVERDUE_NS (300 * LH_NS_PER_MS)
#define SILENCE_NS (2 * LH_NS_PER_S + 8 * OVERDUE_NS) /* docs/connections.md, where UDP does not pass */
#define TIMEOUT_NS (60 * LH_NS_PER_S)

static struct data_path path;
static struct data_path_view view;

static int begin(void **state)
{
    (void)state;
    path = (struct data_path){0};
    view = (struct data_path_view){.mtu_bytes = MTU, .overdue_ns = OVERDUE_NS, .timeout_ns = TIMEOUT_NS};
    return 0;
}

static enum data_path_state announce(uint32_t bytes, lh_time now)
{
    view.bytes = bytes;
    enum data_path_state state = data_path_on_announced(&path, &view, now);
    view.full = false;
    return state;
}

/* Single packets, so often that each gap counts as a whole. */
#define STEP_NS (SILENCE_NS / 8)
static void announce_until(uint32_t bytes, lh_time now, lh_time end)
{
    for (; now < end; now += STEP_NS)
        assert_int_equal(announce(bytes, now), DATA_PATH_PASSES);
    assert_int_equal(announce(bytes, end), DATA_PATH_PASSES);
}

static void announce_times(uint32_t times, uint32_t bytes, lh_time now)
{
    for (uint32_t i = 0; i < times; i++)
        assert_int_equal(announce(bytes, now), DATA_PATH_PASSES);
}

static void test_many_announced_and_none_arrived(void **state)
{
    (void)state;
    announce_until(4 * MTU, 5, 5 + SILENCE_NS - 1);
    assert_int_equal(announce(4 * MTU, 5 + SILENCE_NS), DATA_PATH_BLOCKED);
}

static void test_a_segment_counts_at_most_four_packets(void **state)
{
    (void)state;
    for (lh_time i = 0; i < 7; i++)
        assert_int_equal(announce(1000 * MTU, 2 * i * STEP_NS), DATA_PATH_PASSES);
    path.any.silent = 1;
    assert_int_equal(announce(MTU, 14 * STEP_NS), DATA_PATH_PASSES);
    assert_int_equal(announce(3 * MTU, 15 * STEP_NS), DATA_PATH_BLOCKED);
}

/* Of a gap only an eighth of the silence counts: the clock may have jumped. */
static void test_a_clock_that_jumps(void **state)
{
    (void)state;
    announce_times(100, 4 * MTU, 0);
    for (lh_time i = 1; i < 8; i++)
        assert_int_equal(announce(4 * MTU, i * 10 * SILENCE_NS), DATA_PATH_PASSES);
    assert_int_equal(announce(4 * MTU, 8 * 10 * SILENCE_NS), DATA_PATH_BLOCKED);
}

/* The round trip that was measured across the jump is as long as the jump, and is forgotten soon. */
static void test_a_jump_that_lengthens_the_round_trip(void **state)
{
    (void)state;
    view.packets = 1;
    view.full = true;
    announce(4 * MTU, 0);
    view.full = false;
    announce_times(100, 4 * MTU, 1);
    view.overdue_ns = 10 * TIMEOUT_NS;
    assert_int_equal(announce(4 * MTU, 10 * TIMEOUT_NS), DATA_PATH_PASSES);
    view.overdue_ns = OVERDUE_NS;
    for (lh_time i = 1; i <= 100; i++)
        assert_int_equal(announce(4 * MTU, 10 * TIMEOUT_NS + i * OVERDUE_NS), DATA_PATH_PASSES);
}

static void test_long_silence_needs_evidence(void **state)
{
    (void)state;
    for (lh_time i = 0; i < 31; i++)
        assert_int_equal(announce(1, i * SILENCE_NS), DATA_PATH_PASSES);
    assert_int_equal(announce(1, 31 * SILENCE_NS), DATA_PATH_BLOCKED);
}

/* From the first packet on it takes the silence that a peer may keep. */
static void test_a_path_that_passed_once(void **state)
{
    (void)state;
    announce_times(8, 4 * MTU, 0);
    view.packets = 1;
    view.full = true;
    announce_until(4 * MTU, SILENCE_NS, SILENCE_NS + TIMEOUT_NS - 1);
    assert_int_equal(announce(4 * MTU, SILENCE_NS + TIMEOUT_NS), DATA_PATH_BLOCKED);
    path = (struct data_path){0};
    view.timeout_ns = LH_TIME_NEVER;
    view.full = true;
    announce_until(4 * MTU, 0, 100 * TIMEOUT_NS);
}

/* Each packet that arrives begins the time again. */
static void test_a_path_of_many_losses(void **state)
{
    (void)state;
    for (lh_time i = 0; i < 100; i++) {
        view.packets++;
        view.full = true;
        announce_times(20, 4 * MTU, i * TIMEOUT_NS);
    }
}

static void test_only_small_packets_pass(void **state)
{
    (void)state;
    view.packets = 1;
    announce_times(10, 100, 0);
    view.packets = 2;
    announce_until(1000 * MTU, 10, 10 + SILENCE_NS - 1);
    view.packets = 3; /* small ones go on to arrive */
    assert_int_equal(announce(4 * MTU, 10 + SILENCE_NS), DATA_PATH_TOO_SMALL);
}

/* Short messages are no evidence about full packets. */
static void test_short_messages(void **state)
{
    (void)state;
    for (lh_time i = 0; i < 100; i++) {
        view.packets++;
        announce_times(10, MTU - 1, i * SILENCE_NS);
    }
}

static void test_one_full_packet_settles_the_size(void **state)
{
    (void)state;
    view.packets = 1;
    announce_times(8, 4 * MTU, 0);
    view.full = true;
    announce_times(8, 4 * MTU, SILENCE_NS);
    view.packets = 2;
    announce_times(8, 4 * MTU, 2 * SILENCE_NS);
    assert_true(path.full.passed);
}

static void expect_probed(enum data_path_state why, uint32_t mtu, uint32_t probed, const char *text,
                          bool there)
{
    char out[256];
    data_path_reason(&path, why, mtu, probed, out, sizeof out);
    assert_true(strlen(out) < 200); /* what a REFUSE carries */
    if ((strstr(out, text) != NULL) != there)
        fail_msg("\"%s\" in: %s", text, out);
}

static void expect_reason(enum data_path_state why, uint32_t mtu, const char *text, bool there)
{
    expect_probed(why, mtu, 0, text, there);
}

/* A number that no probe has shown is not recommended. */
static void test_the_mtu_that_is_named(void **state)
{
    (void)state;
    static const enum data_path_state states[] = {DATA_PATH_TOO_SMALL, DATA_PATH_BLOCKED};
    path.any.passed = true; /* the longest text */
    path.full.passed = true;
    for (uint32_t i = 0; i < 2; i++) {
        expect_probed(states[i], 4096, 0, "longhaul probe", true);
        expect_probed(states[i], 4096, 0, "use --mtu ", false);
        expect_probed(states[i], 4096, 1024, "use --mtu 1024)", true);
        expect_probed(states[i], 4096, 1024, "longhaul probe", false);
    }
    /* Control packets of the whole size pass: it is not the size. */
    expect_probed(DATA_PATH_BLOCKED, 4096, 4096, "a firewall or NAT on the path", true);
    expect_probed(DATA_PATH_BLOCKED, 4096, 4096, "--mtu", false);
    expect_probed(DATA_PATH_TOO_SMALL, 4096, 4096, "longhaul probe", true);
}

static void test_reasons(void **state)
{
    (void)state;
    expect_reason(DATA_PATH_TOO_SMALL, MTU, "MTU 1024 do not pass, smaller ones do", true);
    expect_reason(DATA_PATH_TOO_SMALL, 256, "--mtu", false);
    expect_reason(DATA_PATH_BLOCKED, MTU, "UDP ports 4791 and 49152-65535", true);
    expect_reason(DATA_PATH_BLOCKED, MTU, "any more", false);
    expect_reason(DATA_PATH_BLOCKED, MTU, "smaller MTU", true);
    announce_times(1, 9, 0);
    expect_reason(DATA_PATH_BLOCKED, MTU, "smaller MTU", false);
    view.packets = 1;
    announce_times(1, MTU, 0);
    expect_reason(DATA_PATH_BLOCKED, MTU, "any more", true);
}

#define PATH_TEST(function) cmocka_unit_test_setup(function, begin)

static int run_data_path(void)
{
    const struct CMUnitTest tests[] = {
        PATH_TEST(test_many_announced_and_none_arrived),
        PATH_TEST(test_long_silence_needs_evidence),
        PATH_TEST(test_a_segment_counts_at_most_four_packets),
        PATH_TEST(test_a_clock_that_jumps),
        PATH_TEST(test_a_jump_that_lengthens_the_round_trip),
        PATH_TEST(test_a_path_that_passed_once),
        PATH_TEST(test_a_path_of_many_losses),
        PATH_TEST(test_only_small_packets_pass),
        PATH_TEST(test_short_messages),
        PATH_TEST(test_one_full_packet_settles_the_size),
        PATH_TEST(test_the_mtu_that_is_named),
        PATH_TEST(test_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test waiting ---------------------------------------------------------------------------------- */

static struct store store;
static struct waiting waiting;
static struct message_request requests[8];

static int waiting_begin(void **state)
{
    (void)state;
    store_init(&store, UINT64_MAX);
    waiting = (struct waiting){0};
    return 0;
}

static int end(void **state)
{
    struct rx_receive receive;
    (void)state;
    while (waiting_pop(&waiting, &store, &receive))
        continue;
    waiting_give_back(&waiting, &store);
    assert_int_equal(waiting.count, 0);
    assert_int_equal(store_bytes(&store), 0);
    return 0;
}

static void add(uint32_t number, uint64_t tag, uint64_t ignore)
{
    const struct rx_receive receive = {.request = &requests[number], .tag = tag, .ignore = ignore};
    assert_true(waiting_hold(&waiting, &store));
    waiting_add(&waiting, &receive);
}

/* -1: none. */
static int take(uint64_t tag)
{
    struct rx_receive receive;
    return waiting_take(&waiting, &store, tag, &receive) ? (int)(receive.request - requests) : -1;
}

static void test_fits(void **state)
{
    (void)state;
    const struct rx_receive receive = {.tag = 0xF0, .ignore = 0x0F};
    assert_true(receive_fits(&receive, 0xF0));
    assert_true(receive_fits(&receive, 0xF7));
    assert_false(receive_fits(&receive, 0xE0));
    assert_false(receive_fits(&receive, 0xF0 | (uint64_t)1 << 63));
    assert_true(receive_fits(&(struct rx_receive){.ignore = UINT64_MAX}, 77));
}

static void test_the_first_that_fits(void **state)
{
    (void)state;
    add(0, 1, 0);
    add(1, 2, 0);
    add(2, 0, UINT64_MAX);
    add(3, 2, 0);
    assert_int_equal(take(2), 1);
    assert_int_equal(take(2), 2);
    assert_int_equal(take(2), 3);
    assert_int_equal(take(2), -1);
    add(4, 2, 0);
    assert_int_equal(take(1), 0);
    assert_int_equal(take(2), 4);
    assert_int_equal(waiting.count, 0);
    add(5, 3, 0);
    assert_int_equal(take(3), 5);
}

static void test_taken_out(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        add(i, 0, 0);
    assert_true(waiting_remove(&waiting, &store, &requests[3])); /* the last one */
    assert_true(waiting_remove(&waiting, &store, &requests[0]));
    assert_false(waiting_remove(&waiting, &store, &requests[0]));
    add(5, 0, 0);
    assert_int_equal(take(0), 1);
    assert_int_equal(take(0), 2);
    assert_int_equal(take(0), 5);
    assert_int_equal(take(0), -1);
}

static void test_no_memory(void **state)
{
    (void)state;
    store.limit_bytes = 1;
    assert_false(waiting_hold(&waiting, &store));
}

static int run_waiting(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fits),
        cmocka_unit_test_setup_teardown(test_the_first_that_fits, waiting_begin, end),
        cmocka_unit_test_setup_teardown(test_taken_out, waiting_begin, end),
        cmocka_unit_test_setup_teardown(test_no_memory, waiting_begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_auto_deadline() + run_data_path() + run_waiting();
}
