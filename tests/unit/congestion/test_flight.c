/*
 * test_flight.c - what is in flight: losses, reordering, lost and forged reports, a ring that is full.
 *
 * Packets are of 1000 bytes, sent one a microsecond with keys from 1; the path takes 100 us there and back,
 * and the receiver's clock is the sender's plus one second.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/flight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"

#define SIZE  UINT32_C(64)
#define BYTES UINT64_C(1000)
#define RTT   (100 * LH_NS_PER_US)
#define US    LH_NS_PER_US

static struct flight_entry ring[SIZE];
static struct flight flight;
static struct lh_congestion_feedback feedback;

static int set_up(void **state)
{
    (void)state;
    flight_init(&flight, ring, SIZE);
    return 0;
}

/* Keys first to last, one a microsecond; key k leaves at k us. */
static void send(uint64_t first, uint64_t last)
{
    for (uint64_t key = first; key <= last; key++)
        flight_on_sent(&flight, key, 1, BYTES, key * US);
}

static lh_time arrival_ns(uint64_t key)
{
    return LH_NS_PER_S + key * US + RTT / 2;
}

static bool report_full(const struct flight_report *report, lh_time now)
{
    bool news = flight_on_report(&flight, report, RTT, now, &feedback);
    assert_true(flight.arrived_packets + flight.lost_packets <= flight.sent_packets);
    assert_true(flight.arrived_bytes + flight.lost_bytes <= flight.sent_bytes);
    assert_int_equal(feedback.in_flight_bytes, flight_in_flight_bytes(&flight));
    return news;
}

/* That key is the newest that arrived, `arrived` in all; written at once, on time. */
static bool report(uint64_t key, uint64_t arrived)
{
    return report_full(
        &(struct flight_report){
            .key = key, .arrived_packets = arrived, .credit_bytes = 0, .arrived_ns = arrival_ns(key)},
        key * US + RTT);
}

static void test_in_order(void **state)
{
    (void)state;
    send(1, 10);
    assert_int_equal(flight_in_flight_bytes(&flight), 10 * BYTES);
    assert_true(report(4, 4));
    assert_int_equal(feedback.arrived_bytes, 4 * BYTES);
    assert_int_equal(feedback.lost_bytes, 0);
    assert_int_equal(feedback.in_flight_bytes, 6 * BYTES);
    assert_int_equal(feedback.rtt_ns, RTT);
    assert_int_equal(feedback.sent_ns, 4 * US);
    assert_int_equal(feedback.arrived_at_send_bytes, 0);
    assert_int_equal(feedback.in_flight_at_send_bytes, 4 * BYTES);
    assert_int_equal(feedback.rate_bps, 0);  /* since when? */
    assert_int_equal(feedback.train_bps, 0); /* one arrival */
    assert_true(report(10, 10));
    assert_int_equal(feedback.in_flight_bytes, 0);
    assert_int_equal(feedback.train_bps, 8 * BYTES * 1000000);
    assert_int_equal(feedback.train_bytes, 6 * BYTES);
    assert_int_equal(feedback.rate_bps, 8 * BYTES * 1000000); /* since the first report */
    assert_false(report(10, 10));
    assert_int_equal(flight_next(&flight, RTT), LH_TIME_NEVER);
}

/* The rate of a round trip, and a train that arrives at half the rate at which it was sent. */
static void test_rate(void **state)
{
    (void)state;
    send(1, 20);
    assert_true(report(10, 10));
    for (uint64_t key = 21; key <= 40; key++)
        flight_on_sent(&flight, key, 1, BYTES, (key + 100) * US);
    const struct flight_report there = {
        .key = 40, .arrived_packets = 40, .arrived_ns = arrival_ns(10) + 160 * US};
    assert_true(report_full(&there, 300 * US));
    assert_int_equal(feedback.arrived_at_send_bytes, 10 * BYTES);
    assert_int_equal(feedback.rate_bps, 30 * BYTES * 8 * LH_NS_PER_S / (160 * US));
    assert_int_equal(feedback.sends_bps, 30 * BYTES * 8 * LH_NS_PER_S / (130 * US));
    assert_int_equal(feedback.train_bps, feedback.rate_bps);
}

/* Whoever claims that they came faster than they left. */
static void test_rate_is_bounded_by_sends(void **state)
{
    (void)state;
    send(1, 20);
    assert_true(report(10, 10));
    const struct flight_report there = {.key = 20, .arrived_packets = 20, .arrived_ns = arrival_ns(10) + 1};
    assert_true(report_full(&there, 300 * US));
    assert_int_equal(feedback.rate_bps, 8 * BYTES * 1000000);
    assert_true(feedback.train_bps > feedback.rate_bps);
}

static void test_held_back(void **state)
{
    (void)state;
    send(1, 1);
    const struct flight_report there = {
        .key = 1, .arrived_packets = 1, .arrived_ns = arrival_ns(1), .held_ns = 30 * US};
    assert_true(report_full(&there, US + RTT + 37 * US));
    assert_int_equal(feedback.rtt_ns, RTT + 7 * US);
}

static void test_loss(void **state)
{
    (void)state;
    send(1, 20);
    assert_true(report(5, 5));
    assert_true(report(9, 7)); /* 2 of 4 did not come */
    assert_int_equal(feedback.lost_bytes, 2 * BYTES);
    assert_int_equal(feedback.arrived_bytes, 2 * BYTES);
    assert_int_equal(feedback.lost_total_bytes, 2 * BYTES);
    assert_int_equal(feedback.in_flight_bytes, 11 * BYTES);
    assert_true(report(20, 18));
    assert_int_equal(feedback.lost_bytes, 0);
    assert_int_equal(feedback.in_flight_bytes, 0);
}

/* One that is late by less than the reordering window is not lost; a later one is lost, and then not. */
static void test_reordering(void **state)
{
    (void)state;
    flight.reordering_ns = 10 * US;
    send(1, 60);
    assert_true(report(4, 4));
    assert_true(report(8, 7)); /* 5 is late */
    assert_int_equal(feedback.lost_bytes, 0);
    assert_int_equal(feedback.in_flight_bytes, 53 * BYTES);
    assert_true(report(12, 12));
    assert_true(report(13, 12) == false); /* nothing new */
    assert_true(report(20, 19));
    assert_true(report(29, 28));
    assert_int_equal(feedback.lost_bytes, 0);
    assert_true(report(40, 39)); /* missing for 20 us of sends: two windows */
    assert_int_equal(feedback.lost_bytes, BYTES);
    assert_true(report(41, 41)); /* it came after all */
    assert_int_equal(feedback.lost_total_bytes, 0);
    assert_int_equal(feedback.arrived_bytes, 2 * BYTES);
    assert_int_equal(feedback.in_flight_bytes, 19 * BYTES);
}

/* Reports are of totals: one that is lost, late or comes twice costs nothing. */
static void test_lost_and_late_reports(void **state)
{
    (void)state;
    send(1, 30);
    assert_true(report(3, 3));
    assert_true(report(30, 27));
    assert_int_equal(flight.lost_packets, 3);
    assert_int_equal(flight.arrived_bytes, 27 * BYTES);
    assert_false(report(20, 19));
    assert_false(report(30, 27));
    assert_int_equal(flight.lost_packets, 3);
}

static void test_retransmission(void **state)
{
    (void)state;
    send(1, 10);
    assert_true(report(9, 8));                      /* 5 is lost */
    flight_on_sent(&flight, 5, 1, BYTES, 200 * US); /* the same key again */
    assert_true(report_full(&(struct flight_report){.key = 5, .arrived_packets = 10, .arrived_ns = 1},
                            200 * US + RTT + 3 * US)); /* not 295 us */
    assert_int_equal(feedback.rtt_ns, RTT + 3 * US);
    assert_int_equal(feedback.in_flight_bytes, 0);
}

/* Which of two packets with a key has arrived is not known. The later one is taken where it can have arrived,
 * so a sample may be short by the time between them, but never below the shortest round trip. */
static void test_late_after_its_retransmission(void **state)
{
    (void)state;
    send(1, 10);
    assert_true(report(9, 8)); /* 5 is lost, or late */
    flight_on_sent(&flight, 5, 1, BYTES, 200 * US);
    struct flight late = flight;
    const struct flight_report arrived = {.key = 5, .arrived_packets = 9, .arrived_ns = 1};
    assert_true(report_full(&arrived, 200 * US + RTT - 1)); /* too soon for the later one */
    assert_int_equal(feedback.rtt_ns, 295 * US - 1);
    flight = late;
    assert_true(report_full(&arrived, 200 * US + RTT));
    assert_int_equal(feedback.rtt_ns, RTT);
}

static void test_limited(void **state)
{
    (void)state;
    send(1, 4);
    assert_true(report(1, 1));
    flight_on_limited(&flight);
    send(5, 8); /* with 3 in flight that the application let the path wait for */
    assert_true(report(4, 4));
    send(9, 12);
    assert_true(report(8, 8));
    assert_true(feedback.rate_is_limited);
    send(13, 13);
    assert_true(report(13, 13));
    assert_true(feedback.rate_bps > 0);
    assert_false(feedback.rate_is_limited);
}

/* What was measured before the path was empty says nothing about what is sent after it. */
/* What arrives after all, once a timer has taken it for lost, does not say how fast the path is. */
static void test_no_rate_over_a_silence(void **state)
{
    (void)state;
    send(1, 10);
    assert_true(report(2, 2));
    send(11, 12);
    assert_true(flight_on_timer(&flight, RTT, 11 * US + RTT, &feedback));
    flight_on_sent(&flight, 13, 1, BYTES, 500 * US);
    const struct flight_report late = {
        .key = 11, .arrived_packets = 13, .arrived_ns = arrival_ns(11), .held_ns = 400 * US};
    assert_true(report_full(&late, 500 * US + RTT));
    assert_int_equal(feedback.arrived_bytes, 11 * BYTES);
    assert_true(feedback.rtt_ns != 0);
    assert_int_equal(feedback.rate_bps, 0);
}

static void test_idle(void **state)
{
    (void)state;
    send(1, 10);
    assert_true(report(5, 5));
    assert_true(report(10, 10));
    send(1000, 1010);
    assert_true(report(1005, 16));
    assert_int_equal(feedback.rate_bps, 0);
    assert_int_equal(feedback.train_bps, 0);
    assert_int_equal(feedback.rtt_ns, RTT);
    assert_true(report(1010, 21));
    assert_int_equal(feedback.rate_bps, 8 * BYTES * 1000000);
}

static void test_timer(void **state)
{
    (void)state;
    send(1, 10);
    assert_int_equal(flight_next(&flight, 300 * US), 301 * US);
    assert_false(flight_on_timer(&flight, 300 * US, 301 * US - 1, &feedback));
    assert_true(flight_on_timer(&flight, 300 * US, 304 * US, &feedback));
    assert_int_equal(feedback.lost_bytes, 4 * BYTES);
    assert_int_equal(feedback.in_flight_bytes, 6 * BYTES);
    assert_int_equal(feedback.rtt_ns, 0);
    assert_int_equal(flight_next(&flight, 300 * US), 305 * US);
    assert_true(report(2, 2)); /* late after all */
    assert_int_equal(feedback.lost_total_bytes, 2 * BYTES);
    assert_int_equal(feedback.in_flight_bytes, 6 * BYTES);
    assert_true(report(10, 8));
    assert_int_equal(feedback.lost_total_bytes, 2 * BYTES);
    assert_int_equal(feedback.in_flight_bytes, 0);
}

static void test_counts(void **state)
{
    (void)state;
    send(1, 20);
    struct flight_report there = {.key = 10,
                                  .arrived_packets = 8,
                                  .marked_packets = 3,
                                  .dropped_packets = 2,
                                  .credit_bytes = 77,
                                  .arrived_ns = arrival_ns(10)};
    assert_true(report_full(&there, 10 * US + RTT));
    assert_int_equal(feedback.marked_bytes, 3 * BYTES);
    assert_int_equal(feedback.dropped_bytes, 2 * BYTES);
    assert_int_equal(feedback.credit_bytes, 77);
    assert_false(report_full(&there, 10 * US + RTT));
    there.credit_bytes = 99; /* only that is new */
    assert_true(report_full(&there, 10 * US + RTT));
    assert_int_equal(feedback.marked_bytes + feedback.dropped_bytes + feedback.arrived_bytes, 0);
    there.credit_bytes = 50;
    assert_false(report_full(&there, 10 * US + RTT));
    assert_int_equal(feedback.credit_bytes, 99);
}

/* Totals that fall or exceed what was sent, keys never sent, times of any size. */
static void test_forged(void **state)
{
    (void)state;
    send(1, 20);
    assert_true(report(5, 5));
    const struct flight_report fallen = {.key = 9, .arrived_packets = 4};
    assert_false(report_full(&fallen, 9 * US + RTT));
    const struct flight_report absurd = {.key = 0xdeadbeef,
                                         .arrived_packets = UINT64_MAX,
                                         .marked_packets = UINT64_MAX,
                                         .dropped_packets = UINT64_MAX,
                                         .credit_bytes = UINT64_MAX,
                                         .arrived_ns = UINT64_MAX,
                                         .held_ns = UINT64_MAX};
    assert_true(report_full(&absurd, 10 * US + RTT)); /* only 10 packets can have arrived by then */
    assert_int_equal(flight.arrived_packets, 10);
    assert_int_equal(feedback.rtt_ns, 0);
    assert_int_equal(feedback.marked_bytes, 5 * BYTES);
    assert_int_equal(feedback.dropped_bytes, 10 * BYTES);
    assert_true(report_full(
        &(struct flight_report){.key = 20, .arrived_packets = 20, .held_ns = UINT64_MAX}, 999 * US));
    assert_int_equal(feedback.rtt_ns, RTT);
    assert_int_equal(feedback.in_flight_bytes, 0);
}

/* The truth after a lie: the sender goes on at once, and what was claimed is not counted a second time. */
static void test_truth_after_a_lie(void **state)
{
    (void)state;
    send(1, 20);
    struct flight_report there = {
        .key = 20, .arrived_packets = 900, .dropped_packets = 900, .marked_packets = 900};
    there.credit_bytes = UINT64_MAX;
    assert_true(report_full(&there, 20 * US + RTT)); /* 20 were sent, and only 5 of them arrived */
    assert_int_equal(flight.arrived_packets, 20);
    assert_int_equal(feedback.in_flight_bytes, 0);
    there = (struct flight_report){.key = 3, .arrived_packets = 5, .marked_packets = 1, .credit_bytes = 77};
    there.newest = true;
    assert_false(report_full(&there, 21 * US + RTT));
    assert_int_equal(feedback.credit_bytes, 77 + 15 * BYTES); /* none comes for what counts as arrived */
    send(21, 22);
    there = (struct flight_report){
        .key = 22, .arrived_packets = 7, .marked_packets = 2, .arrived_ns = arrival_ns(22), .newest = true};
    assert_true(report_full(&there, 22 * US + RTT));
    assert_int_equal(feedback.arrived_bytes, 2 * BYTES);
    assert_int_equal(feedback.marked_bytes, BYTES);
    assert_int_equal(feedback.in_flight_bytes, 0);
    /* An older one, overtaken, moves nothing back. */
    const struct flight_report old = {.key = 3, .arrived_packets = 5};
    assert_false(report_full(&old, 23 * US + RTT));
    assert_int_equal(flight.arrived_heard, 7);
}

/* Some were taken for lost and arrive after all, unnamed: nothing that left just now counts for them. */
static void test_late_ones_settle_nothing_new(void **state)
{
    (void)state;
    send(1, 10);
    assert_true(flight_on_timer(&flight, 5 * RTT, 20 * US + 5 * RTT, &feedback));
    assert_int_equal(flight.lost_packets, 10);
    lh_time now = 20 * US + 6 * RTT;
    flight_on_sent(&flight, 11, 4, 4 * BYTES, now);
    assert_true(report_full(&(struct flight_report){.arrived_packets = 1, .arrived_ns = 1}, now));
    assert_true(report_full(&(struct flight_report){.arrived_packets = 10, .arrived_ns = 1}, now));
    assert_int_equal(feedback.in_flight_bytes, 4 * BYTES);
}

static void test_before_any_send(void **state)
{
    (void)state;
    assert_false(
        report_full(&(struct flight_report){.key = 0, .arrived_packets = 5, .marked_packets = 5}, 5));
    assert_false(flight_on_timer(&flight, 0, UINT64_MAX - 1, &feedback));
    flight_on_limited(&flight);
    assert_int_equal(flight_in_flight_bytes(&flight), 0);
}

static void test_empty_packets(void **state)
{
    (void)state;
    flight_on_sent(&flight, 1, 3, 0, US);
    assert_true(report_full(&(struct flight_report){.key = 3, .arrived_packets = 2, .marked_packets = 1},
                            US + RTT));
    assert_int_equal(flight.lost_packets, 1);
    assert_int_equal(feedback.arrived_bytes + feedback.marked_bytes + feedback.in_flight_bytes, 0);
}

/* Far more entries than the ring has: every packet is still counted, and the newest ones are found. */
static void test_full_ring(void **state)
{
    (void)state;
    send(1, 20 * SIZE);
    assert_true(flight.head - flight.first <= SIZE);
    assert_int_equal(flight_in_flight_bytes(&flight), 20 * SIZE * BYTES);
    assert_true(report(10 * SIZE, 10 * SIZE - 7));
    assert_int_equal(feedback.arrived_bytes, (10 * SIZE - 7) * BYTES);
    assert_int_equal(feedback.lost_bytes, 7 * BYTES);
    assert_true(feedback.rtt_ns >= RTT && feedback.rtt_ns < RTT + 20 * SIZE * US / 2);
    assert_true(report(20 * SIZE, 20 * SIZE - 7));
    assert_int_equal(feedback.rtt_ns, RTT);
    assert_int_equal(feedback.in_flight_bytes, 0);
    send(20 * SIZE + 1, 20 * SIZE + 5);
    assert_true(report(20 * SIZE + 5, 20 * SIZE - 2));
    assert_int_equal(feedback.arrived_bytes, 5 * BYTES);
}

/* Batches of any size, in a ring of any fill, with reports of anything: the sums hold, everything ends. */
static void test_random(void **state)
{
    (void)state;
    struct lh_prng prng;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        lh_prng_seed(&prng, seed);
        flight_init(&flight, ring, 4u << lh_prng_below(&prng, 5));
        flight.reordering_ns = lh_prng_below(&prng, 3) * 20 * US;
        lh_time now = 0;
        for (uint32_t i = 0; i < 400; i++) {
            now += lh_prng_below(&prng, 40 * US);
            uint64_t kind = lh_prng_below(&prng, 8);
            uint64_t key = lh_prng_below(&prng, 500);
            if (kind < 4) {
                uint32_t packets = 1 + (uint32_t)lh_prng_below(&prng, 9);
                flight_on_sent(&flight, key, packets, lh_prng_below(&prng, packets * BYTES), now);
            } else if (kind < 7) {
                const struct flight_report any = {
                    .key = key,
                    .arrived_packets = flight.arrived_packets + lh_prng_below(&prng, 20),
                    .marked_packets = lh_prng_below(&prng, 2000),
                    .arrived_ns = lh_prng_next(&prng) >> lh_prng_below(&prng, 60),
                    .held_ns = lh_prng_next(&prng) >> lh_prng_below(&prng, 60)};
                uint64_t settled = flight.arrived_bytes + flight.lost_bytes;
                report_full(&any, now);
                assert_true(flight.arrived_bytes + flight.lost_bytes >= settled);
                assert_true(feedback.rtt_ns == 0 || feedback.rtt_ns >= RTT);
                assert_true(feedback.marked_bytes <= feedback.arrived_bytes);
            } else if (lh_prng_chance(&prng, 0.5)) {
                flight_on_timer(&flight, 5 * RTT, now, &feedback);
            } else {
                flight_on_limited(&flight);
            }
        }
        now += 5 * RTT;
        flight_on_timer(&flight, 5 * RTT, now, &feedback);
        assert_int_equal(flight_in_flight_bytes(&flight), 0);
        assert_int_equal(flight_next(&flight, 5 * RTT), LH_TIME_NEVER);
    }
}

/* Another ring, larger each time: nothing of what is known is lost. */
static void test_moves(void **state)
{
    (void)state;
    static struct flight_entry grown[4 * SIZE];
    flight_init(&flight, ring, 16);
    send(1, 10);
    flight_move(&flight, grown, 32);
    send(11, 30);
    flight_move(&flight, ring, SIZE);
    send(31, 60);
    assert_true(report(4, 4));
    assert_int_equal(feedback.rtt_ns, RTT);
    flight_move(&flight, grown, 4 * SIZE);
    assert_true(report(50, 50));
    assert_int_equal(feedback.rtt_ns, RTT);
    assert_int_equal(feedback.arrived_bytes, 46 * BYTES);
    assert_int_equal(feedback.in_flight_bytes, 10 * BYTES);
    assert_int_equal(feedback.lost_total_bytes, 0);
}

/* Nothing is in flight, and so no ring is needed: not for reports either, late ones or lies. */
static void test_without_a_ring(void **state)
{
    (void)state;
    flight_init(&flight, NULL, 0);
    assert_false(report(1, 5));
    assert_int_equal(flight_next(&flight, RTT), LH_TIME_NEVER);
    flight_move(&flight, ring, SIZE);
    send(1, 40);
    assert_true(report(40, 40));
    assert_true(flight_is_settled(&flight));
    flight_move(&flight, NULL, 0);
    for (uint64_t arrived = 0; arrived < 100; arrived += 20)
        report(20, arrived);
    assert_false(flight_on_timer(&flight, RTT, LH_NS_PER_S, &feedback));
    assert_int_equal(feedback.arrived_total_bytes, 40 * BYTES);
    flight_move(&flight, ring, 16);
    send(101, 110);
    assert_int_equal(flight_in_flight_bytes(&flight), 10 * BYTES);
    assert_false(flight_is_settled(&flight));
}

/* Two that left at the same time tell no rate, however much later the second arrives. */
static void test_no_rate_without_time_between(void **state)
{
    (void)state;
    flight_on_sent(&flight, 1, 1, BYTES, US);
    flight_on_sent(&flight, 2, 1, BYTES, US);
    assert_true(report(1, 1));
    assert_true(report(2, 2));
    assert_int_equal(feedback.arrived_bytes, BYTES);
    assert_int_equal(feedback.rate_bps, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_in_order, set_up),
        cmocka_unit_test_setup(test_rate, set_up),
        cmocka_unit_test_setup(test_rate_is_bounded_by_sends, set_up),
        cmocka_unit_test_setup(test_held_back, set_up),
        cmocka_unit_test_setup(test_loss, set_up),
        cmocka_unit_test_setup(test_reordering, set_up),
        cmocka_unit_test_setup(test_lost_and_late_reports, set_up),
        cmocka_unit_test_setup(test_retransmission, set_up),
        cmocka_unit_test_setup(test_late_after_its_retransmission, set_up),
        cmocka_unit_test_setup(test_limited, set_up),
        cmocka_unit_test_setup(test_no_rate_over_a_silence, set_up),
        cmocka_unit_test_setup(test_idle, set_up),
        cmocka_unit_test_setup(test_timer, set_up),
        cmocka_unit_test_setup(test_counts, set_up),
        cmocka_unit_test_setup(test_forged, set_up),
        cmocka_unit_test_setup(test_before_any_send, set_up),
        cmocka_unit_test_setup(test_truth_after_a_lie, set_up),
        cmocka_unit_test_setup(test_late_ones_settle_nothing_new, set_up),
        cmocka_unit_test_setup(test_empty_packets, set_up),
        cmocka_unit_test_setup(test_full_ring, set_up),
        cmocka_unit_test_setup(test_random, set_up),
        cmocka_unit_test_setup(test_moves, set_up),
        cmocka_unit_test_setup(test_without_a_ring, set_up),
        cmocka_unit_test_setup(test_no_rate_without_time_between, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
