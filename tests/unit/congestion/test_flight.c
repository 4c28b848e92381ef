/*
 * test_flight.c - what is in flight: losses, reordering, lost and forged reports, a ring that is full.
 *
 * Packets are of 1000 bytes, sent one a microsecond with keys from 1; the path takes 100 us there and back,
 * and the receiver's clock is the sender's plus one second.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "congestion/flight.h"

/* ---- test flight ----------------------------------------------------------------------------------- */

#define SIZE  UINT32_C(64)
#define BYTES UINT64_C(1000)
#define RTT   (100 * LH_NS_PER_US)
#define US    LH_NS_PER_US

static struct flight_entry ring[SIZE];
static struct flight flight;
static struct lh_congestion_feedback flight_feedback;

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
    bool news = flight_on_report(&flight, report, RTT, now, &flight_feedback);
    assert_true(flight.arrived_packets + flight.lost_packets <= flight.sent_packets);
    assert_true(flight.arrived_bytes + flight.lost_bytes <= flight.sent_bytes);
    assert_int_equal(flight_feedback.in_flight_bytes, flight_in_flight_bytes(&flight));
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
    assert_int_equal(flight_feedback.arrived_bytes, 4 * BYTES);
    assert_int_equal(flight_feedback.lost_bytes, 0);
    assert_int_equal(flight_feedback.in_flight_bytes, 6 * BYTES);
    assert_int_equal(flight_feedback.rtt_ns, RTT);
    assert_int_equal(flight_feedback.sent_ns, 4 * US);
    assert_int_equal(flight_feedback.arrived_at_send_bytes, 0);
    assert_int_equal(flight_feedback.in_flight_at_send_bytes, 4 * BYTES);
    assert_int_equal(flight_feedback.rate_bps, 0);  /* since when? */
    assert_int_equal(flight_feedback.train_bps, 0); /* one arrival */
    assert_true(report(10, 10));
    assert_int_equal(flight_feedback.in_flight_bytes, 0);
    assert_int_equal(flight_feedback.train_bps, 8 * BYTES * 1000000);
    assert_int_equal(flight_feedback.train_bytes, 6 * BYTES);
    assert_int_equal(flight_feedback.rate_bps, 8 * BYTES * 1000000); /* since the first report */
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
    assert_int_equal(flight_feedback.arrived_at_send_bytes, 10 * BYTES);
    assert_int_equal(flight_feedback.rate_bps, 30 * BYTES * 8 * LH_NS_PER_S / (160 * US));
    assert_int_equal(flight_feedback.sends_bps, 30 * BYTES * 8 * LH_NS_PER_S / (130 * US));
    assert_int_equal(flight_feedback.train_bps, flight_feedback.rate_bps);
}

/* Whoever claims that they came faster than they left. */
static void test_rate_is_bounded_by_sends(void **state)
{
    (void)state;
    send(1, 20);
    assert_true(report(10, 10));
    const struct flight_report there = {.key = 20, .arrived_packets = 20, .arrived_ns = arrival_ns(10) + 1};
    assert_true(report_full(&there, 300 * US));
    assert_int_equal(flight_feedback.rate_bps, 8 * BYTES * 1000000);
    assert_true(flight_feedback.train_bps > flight_feedback.rate_bps);
}

static void test_held_back(void **state)
{
    (void)state;
    send(1, 1);
    const struct flight_report there = {
        .key = 1, .arrived_packets = 1, .arrived_ns = arrival_ns(1), .held_ns = 30 * US};
    assert_true(report_full(&there, US + RTT + 37 * US));
    assert_int_equal(flight_feedback.rtt_ns, RTT + 7 * US);
}

static void test_loss(void **state)
{
    (void)state;
    send(1, 20);
    assert_true(report(5, 5));
    assert_true(report(9, 7)); /* 2 of 4 did not come */
    assert_int_equal(flight_feedback.lost_bytes, 2 * BYTES);
    assert_int_equal(flight_feedback.arrived_bytes, 2 * BYTES);
    assert_int_equal(flight_feedback.lost_total_bytes, 2 * BYTES);
    assert_int_equal(flight_feedback.in_flight_bytes, 11 * BYTES);
    assert_true(report(20, 18));
    assert_int_equal(flight_feedback.lost_bytes, 0);
    assert_int_equal(flight_feedback.in_flight_bytes, 0);
}

/* One that is late by less than the reordering window is not lost; a later one is lost, and then not. */
/* What is missing shows at once, before the reordering window has passed; the rest when it is overdue. */
static void test_passed(void **state)
{
    (void)state;
    flight.reordering_ns = 100 * US;
    send(1, 20);
    assert_true(report(10, 7));
    assert_int_equal(flight_feedback.passed_total_bytes, 10 * BYTES);
    assert_int_equal(flight_feedback.arrived_total_bytes, 7 * BYTES);
    assert_int_equal(flight_feedback.lost_total_bytes, 0);
    assert_true(report(8, 8)); /* late */
    assert_int_equal(flight_feedback.passed_total_bytes, 10 * BYTES);
    assert_true(flight_on_timer(&flight, 5 * RTT, 20 * US + 5 * RTT, &flight_feedback));
    assert_int_equal(flight_feedback.passed_total_bytes, 20 * BYTES);
    assert_int_equal(flight_feedback.lost_total_bytes, 12 * BYTES);
}

static void test_reordering(void **state)
{
    (void)state;
    flight.reordering_ns = 10 * US;
    send(1, 60);
    assert_true(report(4, 4));
    assert_true(report(8, 7)); /* 5 is late */
    assert_int_equal(flight_feedback.lost_bytes, 0);
    assert_int_equal(flight_feedback.in_flight_bytes, 53 * BYTES);
    assert_true(report(12, 12));
    assert_true(report(13, 12) == false); /* nothing new */
    assert_true(report(20, 19));
    assert_true(report(29, 28));
    assert_int_equal(flight_feedback.lost_bytes, 0);
    assert_true(report(40, 39)); /* missing for 20 us of sends: two windows */
    assert_int_equal(flight_feedback.lost_bytes, BYTES);
    assert_true(report(41, 41)); /* it came after all */
    assert_int_equal(flight_feedback.lost_total_bytes, 0);
    assert_int_equal(flight_feedback.arrived_bytes, 2 * BYTES);
    assert_int_equal(flight_feedback.in_flight_bytes, 19 * BYTES);
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
    assert_int_equal(flight_feedback.rtt_ns, RTT + 3 * US);
    assert_int_equal(flight_feedback.in_flight_bytes, 0);
}

/* The last packet of a message is lost, which no report tells before it is sent again. */
static void test_retransmission_of_an_unsettled_packet(void **state)
{
    (void)state;
    send(1, 10);
    assert_true(report(9, 9));
    flight_on_sent(&flight, 10, 1, BYTES, 170 * US);
    assert_true(report_full(&(struct flight_report){.key = 10, .arrived_packets = 10, .arrived_ns = 1},
                            170 * US + RTT)); /* not 260 us */
    assert_int_equal(flight_feedback.rtt_ns, RTT);
}

/* A queue of 160 us: what was retransmitted after 140 us has not arrived, as it could have without one. */
static void test_retransmission_of_a_queued_packet(void **state)
{
    (void)state;
    send(1, 10);
    assert_true(report_full(&(struct flight_report){.key = 9, .arrived_packets = 9, .arrived_ns = 1},
                            9 * US + RTT + 160 * US));
    assert_int_equal(flight_feedback.rtt_ns, 260 * US);
    flight_on_sent(&flight, 10, 1, BYTES, 150 * US);
    assert_true(report_full(&(struct flight_report){.key = 10, .arrived_packets = 10, .arrived_ns = 2},
                            10 * US + RTT + 165 * US));
    assert_int_equal(flight_feedback.rtt_ns, 265 * US); /* not 125 */
}

/* Which of two packets with a key has arrived is not known. The one with the usual round trip is taken, so a
 * sample may be short by the time between them, but never below the shortest round trip. */
static void test_late_after_its_retransmission(void **state)
{
    (void)state;
    send(1, 10);
    assert_true(report(9, 8)); /* 5 is lost, or late */
    flight_on_sent(&flight, 5, 1, BYTES, 200 * US);
    struct flight late = flight;
    const struct flight_report arrived = {.key = 5, .arrived_packets = 9, .arrived_ns = 1};
    assert_true(report_full(&arrived, 200 * US + RTT - 1)); /* too soon for the later one */
    assert_int_equal(flight_feedback.rtt_ns, 295 * US - 1);
    flight = late;
    assert_true(report_full(&arrived, 200 * US + RTT));
    assert_int_equal(flight_feedback.rtt_ns, RTT);
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
    assert_true(flight_feedback.rate_is_limited);
    send(13, 13);
    assert_true(report(13, 13));
    assert_true(flight_feedback.rate_bps > 0);
    assert_false(flight_feedback.rate_is_limited);
}

/* What was measured before the path was empty says nothing about what is sent after it. */
/* What arrives after all, once a timer has taken it for lost, does not say how fast the path is. */
static void test_no_rate_over_a_silence(void **state)
{
    (void)state;
    send(1, 10);
    assert_true(report(2, 2));
    send(11, 12);
    assert_true(flight_on_timer(&flight, RTT, 11 * US + RTT, &flight_feedback));
    flight_on_sent(&flight, 13, 1, BYTES, 500 * US);
    const struct flight_report late = {
        .key = 11, .arrived_packets = 13, .arrived_ns = arrival_ns(11), .held_ns = 400 * US};
    assert_true(report_full(&late, 500 * US + RTT));
    assert_int_equal(flight_feedback.arrived_bytes, 11 * BYTES);
    assert_true(flight_feedback.rtt_ns != 0);
    assert_int_equal(flight_feedback.rate_bps, 0);
}

static void test_idle(void **state)
{
    (void)state;
    send(1, 10);
    assert_true(report(5, 5));
    assert_true(report(10, 10));
    send(1000, 1010);
    assert_true(report(1005, 16));
    assert_int_equal(flight_feedback.rate_bps, 0);
    assert_int_equal(flight_feedback.train_bps, 0);
    assert_int_equal(flight_feedback.rtt_ns, RTT);
    assert_true(report(1010, 21));
    assert_int_equal(flight_feedback.rate_bps, 8 * BYTES * 1000000);
}

static void test_timer(void **state)
{
    (void)state;
    send(1, 10);
    assert_int_equal(flight_next(&flight, 300 * US), 301 * US);
    assert_false(flight_on_timer(&flight, 300 * US, 301 * US - 1, &flight_feedback));
    assert_true(flight_on_timer(&flight, 300 * US, 304 * US, &flight_feedback));
    assert_int_equal(flight_feedback.lost_bytes, 4 * BYTES);
    assert_int_equal(flight_feedback.in_flight_bytes, 6 * BYTES);
    assert_int_equal(flight_feedback.rtt_ns, 0);
    assert_int_equal(flight_next(&flight, 300 * US), 305 * US);
    assert_true(report(2, 2)); /* late after all */
    assert_int_equal(flight_feedback.lost_total_bytes, 2 * BYTES);
    assert_int_equal(flight_feedback.in_flight_bytes, 6 * BYTES);
    assert_true(report(10, 8));
    assert_int_equal(flight_feedback.lost_total_bytes, 2 * BYTES);
    assert_int_equal(flight_feedback.in_flight_bytes, 0);
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
    assert_int_equal(flight_feedback.marked_bytes, 3 * BYTES);
    assert_int_equal(flight_feedback.dropped_bytes, 2 * BYTES);
    assert_int_equal(flight_feedback.credit_bytes, 77);
    assert_false(report_full(&there, 10 * US + RTT));
    there.credit_bytes = 99; /* only that is new */
    assert_true(report_full(&there, 10 * US + RTT));
    assert_int_equal(
        flight_feedback.marked_bytes + flight_feedback.dropped_bytes + flight_feedback.arrived_bytes, 0);
    there.credit_bytes = 50;
    assert_false(report_full(&there, 10 * US + RTT));
    assert_int_equal(flight_feedback.credit_bytes, 99);
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
    assert_int_equal(flight_feedback.rtt_ns, 0);
    assert_int_equal(flight_feedback.marked_bytes, 5 * BYTES);
    assert_int_equal(flight_feedback.dropped_bytes, 10 * BYTES);
    assert_true(report_full(
        &(struct flight_report){.key = 20, .arrived_packets = 20, .held_ns = UINT64_MAX}, 999 * US));
    assert_int_equal(flight_feedback.rtt_ns, RTT);
    assert_int_equal(flight_feedback.in_flight_bytes, 0);
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
    assert_int_equal(flight_feedback.in_flight_bytes, 0);
    there = (struct flight_report){.key = 3, .arrived_packets = 5, .marked_packets = 1, .credit_bytes = 77};
    there.newest = true;
    assert_false(report_full(&there, 21 * US + RTT));
    assert_int_equal(flight_feedback.credit_bytes,
                     77 + 15 * BYTES); /* none comes for what counts as arrived */
    send(21, 22);
    there = (struct flight_report){
        .key = 22, .arrived_packets = 7, .marked_packets = 2, .arrived_ns = arrival_ns(22), .newest = true};
    assert_true(report_full(&there, 22 * US + RTT));
    assert_int_equal(flight_feedback.arrived_bytes, 2 * BYTES);
    assert_int_equal(flight_feedback.marked_bytes, BYTES);
    assert_int_equal(flight_feedback.in_flight_bytes, 0);
    /* An older one, reordered, moves nothing back. */
    const struct flight_report old = {.key = 3, .arrived_packets = 5};
    assert_false(report_full(&old, 23 * US + RTT));
    assert_int_equal(flight.arrived_reported, 7);
}

/* Some were taken for lost and arrive after all, unnamed: nothing that left just now counts for them. */
static void test_late_ones_settle_nothing_new(void **state)
{
    (void)state;
    send(1, 10);
    assert_true(flight_on_timer(&flight, 5 * RTT, 20 * US + 5 * RTT, &flight_feedback));
    assert_int_equal(flight.lost_packets, 10);
    lh_time now = 20 * US + 6 * RTT;
    flight_on_sent(&flight, 11, 4, 4 * BYTES, now);
    assert_true(report_full(&(struct flight_report){.arrived_packets = 1, .arrived_ns = 1}, now));
    assert_true(report_full(&(struct flight_report){.arrived_packets = 10, .arrived_ns = 1}, now));
    assert_int_equal(flight_feedback.in_flight_bytes, 4 * BYTES);
}

static void test_before_any_send(void **state)
{
    (void)state;
    assert_false(
        report_full(&(struct flight_report){.key = 0, .arrived_packets = 5, .marked_packets = 5}, 5));
    assert_false(flight_on_timer(&flight, 0, UINT64_MAX - 1, &flight_feedback));
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
    assert_int_equal(
        flight_feedback.arrived_bytes + flight_feedback.marked_bytes + flight_feedback.in_flight_bytes, 0);
}

/* Far more entries than the ring has: every packet is still counted, and the newest ones are found. */
static void test_full_ring(void **state)
{
    (void)state;
    send(1, 20 * SIZE);
    assert_true(flight.head - flight.first <= SIZE);
    assert_int_equal(flight_in_flight_bytes(&flight), 20 * SIZE * BYTES);
    assert_true(report(10 * SIZE, 10 * SIZE - 7));
    assert_int_equal(flight_feedback.arrived_bytes, (10 * SIZE - 7) * BYTES);
    assert_int_equal(flight_feedback.lost_bytes, 7 * BYTES);
    assert_true(flight_feedback.rtt_ns >= RTT && flight_feedback.rtt_ns < RTT + 20 * SIZE * US / 2);
    assert_true(report(20 * SIZE, 20 * SIZE - 7));
    assert_int_equal(flight_feedback.rtt_ns, RTT);
    assert_int_equal(flight_feedback.in_flight_bytes, 0);
    send(20 * SIZE + 1, 20 * SIZE + 5);
    assert_true(report(20 * SIZE + 5, 20 * SIZE - 2));
    assert_int_equal(flight_feedback.arrived_bytes, 5 * BYTES);
}

/* Two entries with a pause between become one: its length is no round trip. */
static void test_full_ring_with_a_pause(void **state)
{
    (void)state;
    send(1, 10);
    assert_true(report(10, 10));
    send(11, 43);
    for (uint64_t key = 44; key <= 80; key++)
        flight_on_sent(&flight, key, 1, BYTES, 10 * RTT + key * US);
    assert_true(flight.head - flight.first < 70); /* pairs of them: 43 and 44 are one */
    const struct flight_report first = {
        .key = 44, .arrived_packets = 44, .arrived_ns = 10 * RTT + arrival_ns(44)};
    assert_true(report_full(&first, 11 * RTT + 44 * US));
    assert_int_equal(flight_feedback.rtt_ns, RTT);
    assert_int_equal(flight_feedback.passed_total_bytes, 44 * BYTES);
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
                assert_true(flight_feedback.rtt_ns == 0 || flight_feedback.rtt_ns >= RTT);
                assert_true(flight_feedback.marked_bytes <= flight_feedback.arrived_bytes);
            } else if (lh_prng_chance(&prng, 0.5)) {
                flight_on_timer(&flight, 5 * RTT, now, &flight_feedback);
            } else {
                flight_on_limited(&flight);
            }
        }
        now += 5 * RTT;
        flight_on_timer(&flight, 5 * RTT, now, &flight_feedback);
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
    assert_int_equal(flight_feedback.rtt_ns, RTT);
    flight_move(&flight, grown, 4 * SIZE);
    assert_true(report(50, 50));
    assert_int_equal(flight_feedback.rtt_ns, RTT);
    assert_int_equal(flight_feedback.arrived_bytes, 46 * BYTES);
    assert_int_equal(flight_feedback.in_flight_bytes, 10 * BYTES);
    assert_int_equal(flight_feedback.lost_total_bytes, 0);
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
    assert_false(flight_on_timer(&flight, RTT, LH_NS_PER_S, &flight_feedback));
    assert_int_equal(flight_feedback.arrived_total_bytes, 40 * BYTES);
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
    assert_int_equal(flight_feedback.arrived_bytes, BYTES);
    assert_int_equal(flight_feedback.rate_bps, 0);
}

static int run_flight(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_in_order, set_up),
        cmocka_unit_test_setup(test_rate, set_up),
        cmocka_unit_test_setup(test_rate_is_bounded_by_sends, set_up),
        cmocka_unit_test_setup(test_held_back, set_up),
        cmocka_unit_test_setup(test_loss, set_up),
        cmocka_unit_test_setup(test_passed, set_up),
        cmocka_unit_test_setup(test_reordering, set_up),
        cmocka_unit_test_setup(test_lost_and_late_reports, set_up),
        cmocka_unit_test_setup(test_retransmission, set_up),
        cmocka_unit_test_setup(test_retransmission_of_an_unsettled_packet, set_up),
        cmocka_unit_test_setup(test_retransmission_of_a_queued_packet, set_up),
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
        cmocka_unit_test_setup(test_full_ring_with_a_pause, set_up),
        cmocka_unit_test_setup(test_random, set_up),
        cmocka_unit_test_setup(test_moves, set_up),
        cmocka_unit_test_setup(test_without_a_ring, set_up),
        cmocka_unit_test_setup(test_no_rate_without_time_between, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test round trips ------------------------------------------------------------------------------ */

/* Round trips, the minimum, and loss beyond chance. */

#define MTU 1000

static const struct lh_congestion_path round_trips_path = {.mtu_bytes = MTU, .rtt_ns = 100000};

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
    round_trips_init(&rounds, &round_trips_path);
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
    round_trips_init(&rounds, &round_trips_path);
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
    round_trips_init(&rounds, &round_trips_path);
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

static void round_trips_test_loss(void **state)
{
    (void)state;
    struct round_trips rounds;
    uint64_t arrived = 0;
    round_trips_init(&rounds, &round_trips_path);
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
    round_trips_init(&rounds, &round_trips_path);
    run_round(&rounds, &arrived, 100, 0, 100000, 10000);
    round_trips_on_cut(&rounds);
    for (int i = 0; i < 2; i++) {
        run_round(&rounds, &arrived, 100, 50, 100000, 10000);
        assert_true(round_trips_excess_loss(&rounds) == 0);
    }
    run_round(&rounds, &arrived, 100, 50, 100000, 10000);
    assert_true(round_trips_excess_loss(&rounds) > 0.3);
}

static int run_round_trips(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds_and_delay),
        cmocka_unit_test(test_longer_path),
        cmocka_unit_test(test_longer_path_with_one_packet),
        cmocka_unit_test(round_trips_test_loss),
        cmocka_unit_test(test_loss_after_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test share ------------------------------------------------------------------------------------ */

/* Growth, targets and first windows. */

#define GBIT UINT64_C(1000000000)

static const struct lh_congestion_path path = {
    .mtu_bytes = MTU, .rate_max_bps = 10 * GBIT, .window_max_bytes = 50000000, .rtt_ns = 10 * LH_NS_PER_MS};

/* More for the larger flow, but relatively less. */
static void test_step(void **state)
{
    (void)state;
    assert_true(share_step_bytes(100.0 * MTU, MTU) == 5.0 * MTU);
    assert_true(share_step_bytes(1.0 * MTU, MTU) == MTU);
    assert_true(share_step_bytes(0, MTU) == MTU);
    for (double packets = 4; packets < 1e7; packets *= 2) {
        double step = share_step_bytes(packets * MTU, MTU), next = share_step_bytes(2 * packets * MTU, MTU);
        assert_true(next >= step && next / 2 < step);
    }
}

static void test_target(void **state)
{
    (void)state;
    assert_true(share_smallness(MTU / 2.0, MTU) == 1);
    assert_true(share_smallness(1024.0 * MTU, MTU) == 0.5);
    assert_true(share_smallness(1e300, MTU) == 0);
    assert_true(share_target_ns(1000, MTU, MTU) == 5000);
    assert_true(share_target_ns(1000, 1024.0 * MTU, MTU) == 3000);
    assert_true(share_target_ns(1000, 1e12, MTU) == 1000);
}

static void test_first_window(void **state)
{
    (void)state;
    struct lh_congestion_path known = path;
    assert_true(share_first_window_bytes(&known) == 10 * MTU);
    known.remembered_rate_bps = GBIT;
    assert_true(share_first_window_bytes(&known) == 625000);
    known.rate_bps = 2 * GBIT;
    assert_true(share_first_window_bytes(&known) == 2500000);
    known.rtt_ns = 0; /* not known yet */
    assert_true(share_first_window_bytes(&known) == 10 * MTU);
}

static void test_bounds(void **state)
{
    (void)state;
    assert_int_equal(share_rate_within(1e9, &path), GBIT);
    assert_int_equal(share_rate_within(1e30, &path), 10 * GBIT);
    assert_true(share_rate_within(0, &path) > 0);
    assert_int_equal(share_window_within(0, &path), MTU);
    assert_int_equal(share_window_within(12345, &path), 12345);
    assert_int_equal(share_window_within(1e30, &path), 50000000);
    assert_int_equal(share_burst_bytes(160000, &path), 10000);
    assert_int_equal(share_burst_bytes(1, &path), MTU);
    assert_true(share_bytes_of(share_rate_of(777, 1e6), 1e6) == 777);
}

static int run_share(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_target),
        cmocka_unit_test(test_first_window),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_flight() + run_round_trips() + run_share();
}
