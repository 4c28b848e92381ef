/*
 * test_rate_control_read_rate.c - what a receiver reads: the best span, and how it was when its sockets
 * dropped.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sdr/rate_control.h"

/* ---- test read rate -------------------------------------------------------------------------------- */

#define RTT_NS  (20 * LH_NS_PER_MS)
#define SPAN_NS (READ_RATE_ROUNDS * RTT_NS)
#define MBIT    UINT64_C(1000000)

static struct read_rate read_rate_rate;
static uint64_t arrived, dropped;
static lh_time read_rate_now;

static int setup(void **state)
{
    (void)state;
    read_rate_rate = (struct read_rate){0};
    arrived = dropped = 0;
    read_rate_now = LH_NS_PER_S;
    read_rate_note(&read_rate_rate, arrived, dropped, RTT_NS, read_rate_now);
    return 0;
}

static void note_after(lh_time span_ns, uint64_t rate_bps)
{
    read_rate_now += span_ns;
    arrived += rate_bps * span_ns / LH_NS_PER_S / 8;
    read_rate_note(&read_rate_rate, arrived, dropped, RTT_NS, read_rate_now);
}

static void the_best_span_counts(void **state)
{
    (void)state;
    note_after(SPAN_NS - 1, 1000 * MBIT);
    assert_int_equal(read_rate_rate.best_bps, 0);
    note_after(SPAN_NS + 1, 0); /* a burst and a pause are one span */
    assert_in_range(read_rate_rate.best_bps, 499 * MBIT, 501 * MBIT);
    note_after(SPAN_NS, 300 * MBIT);
    assert_in_range(read_rate_rate.best_bps, 499 * MBIT, 501 * MBIT);
    note_after(SPAN_NS, 600 * MBIT);
    assert_int_equal(read_rate_rate.best_bps, 600 * MBIT);
    assert_int_equal(read_rate_rate.receiver_bps, 0);
}

static void short_round_trips_make_no_shorter_spans(void **state)
{
    (void)state;
    read_rate_now += READ_RATE_MIN_NS - 1;
    read_rate_note(&read_rate_rate, 1000, 0, 1, read_rate_now);
    assert_int_equal(read_rate_rate.best_bps, 0);
    read_rate_note(&read_rate_rate, 1000, 0, 1, read_rate_now + 1);
    assert_int_equal(read_rate_rate.best_bps, 80000);
}

static void drops_tell_the_receivers_rate(void **state)
{
    (void)state;
    dropped = 1;
    note_after(SPAN_NS / 2, 80 * MBIT);
    assert_int_equal(read_rate_rate.receiver_bps, 80 * MBIT); /* at once */
    note_after(SPAN_NS / 2, 120 * MBIT);
    assert_int_equal(read_rate_rate.receiver_bps, 100 * MBIT);
    for (int i = 0; i < 100; i++) /* no matter how long ago */
        note_after(SPAN_NS, 125 * MBIT);
    assert_in_range(read_rate_rate.receiver_bps, 100 * MBIT, 125 * MBIT);
}

static void a_receiver_that_reads_more_is_not_slow(void **state)
{
    (void)state;
    dropped = 1;
    note_after(SPAN_NS, 100 * MBIT);
    note_after(SPAN_NS, 100 * MBIT);
    note_after(SPAN_NS, 126 * MBIT);
    assert_int_equal(read_rate_rate.receiver_bps, 0);
    dropped = 2;
    note_after(SPAN_NS, 0);
    assert_int_equal(read_rate_rate.receiver_bps, 1); /* it reads nothing */
    note_after(SPAN_NS, 50 * MBIT);                   /* the pause's other half */
    assert_int_equal(read_rate_rate.receiver_bps, 50 * MBIT);
}

static void the_first_report_may_have_drops(void **state)
{
    (void)state;
    read_rate_rate = (struct read_rate){0};
    read_rate_note(&read_rate_rate, 1000, 7, RTT_NS, 5);
    assert_int_equal(read_rate_rate.receiver_bps, 1);
    assert_int_equal(read_rate_rate.best_bps, 0);
    read_rate_note(&read_rate_rate, 1000, 7, RTT_NS, 5); /* no time has passed */
    assert_int_equal(read_rate_rate.best_bps, 0);
}

static int run_read_rate(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_best_span_counts, setup),
        cmocka_unit_test_setup(short_round_trips_make_no_shorter_spans, setup),
        cmocka_unit_test_setup(drops_tell_the_receivers_rate, setup),
        cmocka_unit_test_setup(a_receiver_that_reads_more_is_not_slow, setup),
        cmocka_unit_test_setup(the_first_report_may_have_drops, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test shared rate ------------------------------------------------------------------------------ */

/* One rate, several senders: its sum, their shares, small packets between the turns. */

#define SENDERS 5u
#define GBIT    UINT64_C(1000000000)
#define MTU     4096u
#define US      LH_NS_PER_US
#define MS      LH_NS_PER_MS

struct sender {
    struct rate_turn turn;
    uint64_t waiting; /* bytes */
    uint64_t sent;
};

struct world {
    struct shared_rate rate;
    struct sender senders[SENDERS];
};

static struct world *begin(uint64_t rate_bps)
{
    static struct world world;
    memset(&world, 0, sizeof world);
    shared_rate_init(&world.rate, rate_bps);
    return &world;
}

/* Sends what it may, in packets of at most `packet`. Returns the bytes. */
static uint64_t send_some(struct world *world, struct sender *sender, uint64_t packet, lh_time now)
{
    uint64_t sent = 0;
    while (sender->waiting > 0) { /* ends: the rate lets no more out */
        uint64_t first = sender->waiting < packet ? sender->waiting : packet;
        uint64_t room = shared_rate_room(&world->rate, &sender->turn, sender->waiting, first, now);
        if (room < first)
            break;
        shared_rate_on_sent(&sender->turn, first);
        sender->waiting -= first;
        sent += first;
    }
    sender->sent += sent;
    return sent;
}

/* With always more to send, packets of 4096, 2896, 1696 … bytes: the rate in all, and equal shares. */
static void test_equal_shares(void **state)
{
    (void)state;
    static const uint64_t rates[] = {GBIT / 100, GBIT, 100 * GBIT};
    for (uint32_t r = 0; r < 3; r++) {
        struct world *world = begin(rates[r]);
        uint64_t sum = 0, full = rates[r] / 8 / 10; /* of 100 ms */
        for (lh_time now = LH_NS_PER_S; now < LH_NS_PER_S + 100 * MS; now += 2 * US)
            for (uint32_t i = 0; i < SENDERS; i++) {
                world->senders[i].waiting = (uint64_t)1 << 40;
                sum += send_some(world, &world->senders[i], MTU - i * 1000 / 2, now);
            }
        assert_in_range(sum, full - full / 10, full + 2 * SENDERS * SHARED_RATE_TURN_MAX);
        /* The first one gets the first burst. */
        uint64_t about = world->rate.pacer.burst_bytes + 2 * world->rate.turn_bytes;
        for (uint32_t i = 0; i < SENDERS; i++)
            assert_in_range(world->senders[i].sent + about, sum / SENDERS, sum / SENDERS + 2 * about);
    }
}

/* What the others do not want is one's. */
static void test_alone_has_all(void **state)
{
    (void)state;
    struct world *world = begin(GBIT);
    struct sender *sender = &world->senders[0];
    sender->waiting = (uint64_t)1 << 40;
    for (lh_time now = LH_NS_PER_S; now < LH_NS_PER_S + 100 * MS; now += US)
        send_some(world, sender, MTU, now);
    assert_in_range(sender->sent, GBIT / 80 - 70000, GBIT / 80 + 200000);
}

/* Four send bulk. A small packet of the fifth leaves at once, each millisecond; the sum stays what it is. */
static void test_small_ones_leave_at_once(void **state)
{
    (void)state;
    struct world *world = begin(GBIT);
    struct sender *small = &world->senders[4];
    uint64_t sum = 0;
    for (lh_time now = LH_NS_PER_S; now < LH_NS_PER_S + 100 * MS; now += 10 * US) {
        for (uint32_t i = 0; i < 4; i++) {
            world->senders[i].waiting = (uint64_t)1 << 40;
            sum += send_some(world, &world->senders[i], MTU, now);
        }
        if (now < LH_NS_PER_S + 10 * MS || now % MS != 0)
            continue;
        small->waiting = 64;
        assert_int_equal(send_some(world, small, MTU, now), 64);
        sum += 64;
    }
    assert_in_range(sum, GBIT / 80 / 10 * 9, GBIT / 80 + 400000);
}

/* A flood of small packets gets a share, as everybody. */
static void test_flood_of_small_ones(void **state)
{
    (void)state;
    struct world *world = begin(GBIT);
    for (lh_time now = LH_NS_PER_S; now < LH_NS_PER_S + 100 * MS; now += US)
        for (uint32_t i = 0; i < SENDERS; i++) {
            world->senders[i].waiting = i == 0 ? 64 : (uint64_t)1 << 40;
            send_some(world, &world->senders[i], MTU, now);
        }
    uint64_t share = GBIT / 80 / SENDERS;
    assert_true(world->senders[0].sent < share + share / 4);
    for (uint32_t i = 1; i < SENDERS; i++)
        assert_true(world->senders[i].sent > share - share / 10);
}

/* An empty packet needs a turn, too; who needs more than is left gets more. */
static void test_small_print(void **state)
{
    (void)state;
    struct world *world = begin(GBIT);
    struct rate_turn *turn = &world->senders[0].turn;
    assert_false(shared_rate_is_on(&(struct shared_rate){0}));
    assert_true(shared_rate_is_on(&world->rate));
    assert_int_equal(shared_rate_room(&world->rate, turn, 0, 0, LH_NS_PER_S), 1);
    shared_rate_on_sent(turn, 0);
    assert_int_equal(shared_rate_room(&world->rate, turn, 5000, 4096, LH_NS_PER_S), 5000);
    shared_rate_on_sent(turn, 4096);
    assert_int_equal(shared_rate_room(&world->rate, turn, 904, 904, LH_NS_PER_S), 904);
}

/* What may leave at once after a pause: a millisecond of the rate, between a turn and 256 KiB. */
static void test_arrears(void **state)
{
    (void)state;
    assert_int_equal(pacer_allowance(&begin(GBIT / 1000)->rate.pacer, MS), SHARED_RATE_TURN_MIN);
    assert_int_equal(pacer_allowance(&begin(GBIT)->rate.pacer, MS), 125000);
    assert_int_equal(pacer_allowance(&begin(100 * GBIT)->rate.pacer, MS), 256 * 1024);
}

static int run_shared_rate(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_shares),
        cmocka_unit_test(test_alone_has_all),
        cmocka_unit_test(test_small_ones_leave_at_once),
        cmocka_unit_test(test_flood_of_small_ones),
        cmocka_unit_test(test_small_print),
        cmocka_unit_test(test_arrears),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_read_rate() + run_shared_rate();
}
