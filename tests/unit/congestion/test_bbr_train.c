/*
 * test_bbr_train.c - what the spacing of the first packets says about a path, and when nothing is believed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/bbr_train.h"

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

/* As fast as it was sent: the path may have more. */
static void test_a_path_that_is_not_filled(void **state)
{
    (void)state;
    struct bench t;
    setup(&t, 0);
    report(&t, 4, 0, 0, false, 0);
    report(&t, 4, 40e9, 30000000000u, false, 0);
    report(&t, 4, 40e9, 30000000000u, false, 0);
    assert_float_equal(t.rate.bps, 3e10, 1e6);
    assert_false(t.rate.is_of_path);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_a_path_that_spaces),
        cmocka_unit_test(test_a_path_that_is_not_filled),
        cmocka_unit_test(test_parts_that_disagree),
        cmocka_unit_test(test_an_idle_application),
        cmocka_unit_test(test_a_train_that_is_lost),
        cmocka_unit_test(test_a_train_in_one_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
