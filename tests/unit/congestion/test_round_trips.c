/*
 * test_round_trips.c - round trips, the minimum, and loss beyond chance.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/round_trips.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MTU 1000

static const struct lh_congestion_path path = {.mtu_bytes = MTU, .rtt_ns = 100000};

/* A round trip of `packets`, all with the same delay. */
static bool run_round(struct round_trips *rounds, uint64_t *arrived, uint32_t packets, uint32_t lost,
                      lh_time rtt_ns, lh_time target_ns)
{
    uint64_t before = *arrived;
    bool ended = false;
    *arrived += (uint64_t)packets * MTU;
    for (uint32_t i = 1; i <= packets; i++) {
        struct lh_congestion_feedback feedback = {
            .arrived_bytes = MTU,
            .lost_bytes = i <= lost ? MTU : 0,
            .arrived_total_bytes = before + (uint64_t)i * MTU,
            .arrived_at_send_bytes = i < packets ? 0 : before,
            .rtt_ns = i == 1 ? rtt_ns : rtt_ns + i, /* the lowest counts */
        };
        ended = round_trips_on_feedback(rounds, &feedback, target_ns);
        if (before != 0 && i < packets)
            assert_false(ended);
    }
    return ended;
}

static void test_rounds_and_delay(void **state)
{
    (void)state;
    struct round_trips rounds;
    uint64_t arrived = 0;
    round_trips_init(&rounds, &path);
    run_round(&rounds, &arrived, 1, 0, 130000, 1000000);
    assert_int_equal(rounds.queue_ns, 30000);
    assert_true(run_round(&rounds, &arrived, 10, 0, 150000, 1000000));
    assert_int_equal(rounds.queue_ns, 50000);
    assert_true(run_round(&rounds, &arrived, 10, 0, 90000, 1000000));
    assert_int_equal(rounds.minimum_ns, 90000);
    assert_int_equal(rounds.queue_ns, 0);
    struct lh_congestion_feedback without = {.arrived_bytes = 1}; /* about no packet that is known */
    assert_false(round_trips_on_feedback(&rounds, &without, 0));
    assert_int_equal(rounds.minimum_ns, 90000);
}

/* 32 round trips above twice the target raise the minimum, 31 do not, nor do they with one good one. */
static void test_longer_path(void **state)
{
    (void)state;
    struct round_trips rounds;
    uint64_t arrived = 0;
    round_trips_init(&rounds, &path);
    run_round(&rounds, &arrived, 1, 0, 100000, 10000);
    for (int i = 0; i < 31; i++)
        run_round(&rounds, &arrived, 5, 0, 130000 + (lh_time)(i % 3) * 1000, 10000);
    assert_int_equal(rounds.minimum_ns, 100000);
    run_round(&rounds, &arrived, 5, 0, 115000, 10000);
    for (int i = 0; i < 31; i++)
        run_round(&rounds, &arrived, 5, 0, 130000 + (lh_time)(i % 3) * 1000, 10000);
    assert_int_equal(rounds.minimum_ns, 100000);
    run_round(&rounds, &arrived, 5, 0, 140000, 10000);
    assert_int_equal(rounds.minimum_ns, 130000);
}

/* With a packet in flight a queue above the target is another's, or none. */
static void test_longer_path_with_one_packet(void **state)
{
    (void)state;
    struct round_trips rounds;
    round_trips_init(&rounds, &path);
    rounds.slowed_by_delay = true;
    for (uint64_t i = 1; i <= 64; i++) {
        struct lh_congestion_feedback feedback = {.arrived_bytes = MTU,
                                                  .arrived_total_bytes = i * MTU,
                                                  .arrived_at_send_bytes = i * MTU,
                                                  .in_flight_at_send_bytes = (i <= 32 ? 2 : 1) * MTU,
                                                  .rtt_ns = 111000};
        assert_int_equal(rounds.minimum_ns, 100000);
        assert_true(round_trips_on_feedback(&rounds, &feedback, 10000));
    }
    assert_int_equal(rounds.minimum_ns, 111000);
}

static void test_loss(void **state)
{
    (void)state;
    struct round_trips rounds;
    uint64_t arrived = 0;
    round_trips_init(&rounds, &path);
    run_round(&rounds, &arrived, 100, 6, 100000, 10000); /* 6 of 106: chance */
    assert_true(round_trips_excess_loss(&rounds) == 0);
    run_round(&rounds, &arrived, 100, 7, 100000, 10000); /* 7 of 107: more */
    double lost = round_trips_excess_loss(&rounds);
    assert_true(lost > 0.065 && lost < 0.066);
    assert_true(round_trips_excess_loss(&rounds) == 0); /* the sample is taken */
    run_round(&rounds, &arrived, 10, 5, 100000, 10000); /* too few to judge */
    assert_true(round_trips_excess_loss(&rounds) == 0);
    run_round(&rounds, &arrived, 49, 0, 100000, 10000); /* 5 of 64 */
    assert_true(round_trips_excess_loss(&rounds) > 0);
}

static void test_loss_after_cut(void **state)
{
    (void)state;
    struct round_trips rounds;
    uint64_t arrived = 0;
    round_trips_init(&rounds, &path);
    run_round(&rounds, &arrived, 100, 0, 100000, 10000);
    round_trips_on_cut(&rounds);
    for (int i = 0; i < 2; i++) {
        run_round(&rounds, &arrived, 100, 50, 100000, 10000);
        assert_true(round_trips_excess_loss(&rounds) == 0);
    }
    run_round(&rounds, &arrived, 100, 50, 100000, 10000);
    assert_true(round_trips_excess_loss(&rounds) > 0.3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds_and_delay),
        cmocka_unit_test(test_longer_path),
        cmocka_unit_test(test_longer_path_with_one_packet),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_loss_after_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
