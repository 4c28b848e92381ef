/*
 * test_eager_tx.c -
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

#include "base/prng.h"
#include "eager/eager_rx.h"
#include "eager/eager_tx.h"

/* ---- test outgoing --------------------------------------------------------------------------------- */

#define RTT   (10 * LH_NS_PER_MS)
#define FIRST 0xFFFFFFC0u /* of the messages: numbers wrap */

static const struct outgoing_path test_outgoing_path = {
    .rtt_ns = RTT,
    .rtt_minimum_ns = RTT,
    .overdue_ns = RTT + RTT / 8,
    .reorder_window_ns = RTT / 8,
    .window_bytes = 65536,
};
static struct outgoing outgoing;
static uint8_t outgoing_payload[1 << 16];

static int begin(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof outgoing_payload; i++)
        outgoing_payload[i] = (uint8_t)(i * 31 + (i >> 8));
    outgoing = (struct outgoing){0};
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(outgoing.ring);
    return 0;
}

static void add(uint32_t number, uint64_t bytes)
{
    if (outgoing_is_full(&outgoing)) {
        uint32_t capacity = outgoing.capacity ? 2 * outgoing.capacity : 4;
        free(outgoing_move(&outgoing, calloc(1, outgoing_ring_bytes(capacity)), capacity));
    }
    const struct outgoing_content content = {
        .payload = outgoing_payload + number % 4096,
        .bytes = bytes,
        .tag = number % 3 == 0 ? number + 1 : 0,
        .is_long = bytes > EAGER_MAX,
    };
    outgoing_add(&outgoing, number, &content);
}

static void add_many(uint32_t count, uint64_t bytes)
{
    for (uint32_t i = 0; i < count; i++)
        add(outgoing.used ? outgoing.next : FIRST, bytes);
}

/* A packet that the machine fills now; entries: how many, messages: of which. False: nothing is sent. */
static bool fill(struct eager_packet *packet, lh_time now)
{
    static uint8_t out[EAGER_BYTES_MAX];
    struct eager_writer writer;
    outgoing_poll(&outgoing, &test_outgoing_path, now);
    eager_write_begin(&writer, out, EAGER_BYTES_MAX, outgoing.carrier, NULL);
    if (!outgoing_fill(&outgoing, &test_outgoing_path, now, &writer))
        return false;
    assert_int_equal(eager_decode(out, writer.bytes, packet), 0);
    return true;
}

/* The numbers of the entries that leave now, in all packets, from FIRST. */
static uint32_t sent_at(lh_time now, uint32_t numbers[], uint32_t max)
{
    struct eager_packet packet;
    struct eager_entry entry;
    uint32_t count = 0;
    while (fill(&packet, now))
        while (eager_next_entry(&packet, &entry))
            if (count < max)
                numbers[count++] = entry.message - FIRST;
    return count;
}

static struct eager_ack ack_of(uint32_t newest, uint32_t base, uint32_t posted)
{
    return (struct eager_ack){
        .newest = newest, .received = newest + 1, .base = FIRST + base, .posted = FIRST + posted};
}

static void ack(uint32_t newest, uint32_t base, uint32_t posted, lh_time now)
{
    struct eager_ack one = ack_of(newest, base, posted);
    assert_int_equal(outgoing_on_ack(&outgoing, &one, now), 0);
}

static uint32_t take_delivered(void)
{
    uint32_t number = outgoing.oldest, count = 0;
    while (outgoing_next_delivered(&outgoing, &number)) {
        outgoing_forget(&outgoing, number);
        count++;
    }
    return count;
}

/* ---- one thing at a time ----------------------------------------------------------------------------- */

static void test_many_share_a_carrier(void **state)
{
    (void)state;
    struct eager_packet packet;
    struct eager_entry entry;
    add_many(30, 64);
    uint32_t packets = 0, expected = FIRST;
    for (; fill(&packet, 0); packets++) {
        assert_int_equal(packet.carrier, packets);
        while (eager_next_entry(&packet, &entry)) {
            assert_int_equal(entry.message, expected++);
            assert_memory_equal(entry.data, outgoing_payload + entry.message % 4096, 64);
            assert_int_equal(entry.tag, entry.message % 3 == 0 ? entry.message + 1 : 0);
        }
    }
    assert_int_equal(expected, FIRST + 30);
    assert_int_equal(packets, 3);
    ack(2, 30, 30, RTT);
    assert_int_equal(take_delivered(), 30);
    assert_int_equal(outgoing.in_flight_bytes, 0);
    assert_int_equal(outgoing.oldest, outgoing.next);
}

/* 896 bytes and 128: seven messages are in eight carriers, whichever of them was begun first. */
static void test_last_units_share_a_carrier(void **state)
{
    (void)state;
    struct eager_packet packet;
    struct eager_entry entry;
    uint8_t units[15] = {0};
    uint32_t packets = 0;
    add_many(15, 1024);
    for (; fill(&packet, 0); packets++) {
        assert_true(outgoing.in_flight_bytes <= test_outgoing_path.window_bytes);
        while (eager_next_entry(&packet, &entry)) {
            uint8_t *seen = &units[entry.message - FIRST];
            assert_int_equal(*seen & 1u << entry.unit, 0);
            *seen |= (uint8_t)(1u << entry.unit);
            assert_memory_equal(entry.data,
                                outgoing_payload + entry.message % 4096 + entry.unit * EAGER_UNIT_BYTES,
                                entry.data_bytes);
        }
    }
    for (uint32_t i = 0; i < 15; i++)
        assert_int_equal(units[i], 3);
    assert_in_range(packets, 15, 18);
    ack(packets - 1, 15, 15, RTT);
    assert_int_equal(take_delivered(), 15);
    assert_int_equal(outgoing.in_flight_bytes, 0);
    assert_int_equal(outgoing.cells, 0);
}

/* The receive of a message was posted that was begun only. */
static void test_what_was_begun_gives_its_places_back(void **state)
{
    (void)state;
    struct eager_packet packet;
    uint32_t numbers[8];
    add_many(2, 1024);
    assert_true(fill(&packet, 0)); /* the first unit of the first */
    assert_int_equal(outgoing.cells, eager_cells(1024));
    ack(0, 0, 8, RTT);
    assert_int_equal(outgoing.cells, 0);
    assert_int_equal(sent_at(RTT, numbers, 8), 3);
    assert_int_equal(outgoing.cells, 0);
}

/* Places and window hold what is begun, and all before it: none is left that waits for those behind it. */
static void test_what_is_begun_is_sent(void **state)
{
    struct eager_packet packet;
    struct lh_prng prng;
    for (uint32_t seed = 1; seed <= 200; seed++) {
        uint64_t maximum = seed % 2 ? 2048 : 960; /* the window is full first, or the places */
        lh_prng_seed(&prng, seed);
        for (uint32_t i = 0; i < EAGER_CELLS; i++)
            add_many(1,
                     maximum == 2048 ? lh_prng_below(&prng, maximum) : maximum - lh_prng_below(&prng, 128));
        while (fill(&packet, 0)) {
            assert_true(outgoing.cells <= EAGER_CELLS);
            assert_true(outgoing.in_flight_bytes <= test_outgoing_path.window_bytes);
        }
        assert_int_not_equal(outgoing.unsent, outgoing.next);
        for (uint32_t n = outgoing.unsent; n != outgoing.next; n++) {
            const struct outgoing_message *message = &outgoing.ring[n & (outgoing.capacity - 1)];
            assert_int_equal(message->units, eager_unit_mask(message->bytes));
        }
        end(state);
        begin(state);
    }
}

static void test_delivered_out_of_order(void **state)
{
    (void)state;
    uint32_t numbers[16];
    add_many(4, 64);
    sent_at(0, numbers, 16);
    struct eager_ack one = ack_of(0, 0, 0);
    one.run_count = 4;
    one.runs[0] = (struct eager_run){EAGER_MISSING, 1};
    one.runs[1] = (struct eager_run){EAGER_DELIVERED, 1};
    one.runs[2] = (struct eager_run){EAGER_HELD, 1};
    one.runs[3] = (struct eager_run){EAGER_OTHER, EAGER_RUN_MAX}; /* beyond what was sent, too */
    assert_int_equal(outgoing_on_ack(&outgoing, &one, RTT), 0);
    uint32_t number = outgoing.oldest;
    assert_true(outgoing_next_delivered(&outgoing, &number));
    assert_int_equal(number, FIRST + 1);
    assert_int_equal(take_delivered(), 1);
    assert_int_equal(outgoing.missing, 1);
    assert_int_equal(outgoing.held, 1);
}

/* Places beyond the receives that are known: as many as there are cells. */
static void test_waits_for_places(void **state)
{
    (void)state;
    uint32_t numbers[1024];
    add_many(EAGER_CELLS + 10, 1);
    outgoing.loss = 0; /* no copies */
    assert_int_equal(sent_at(0, numbers, 1024), EAGER_CELLS);
    ack(outgoing.carrier - 1, 0, 3, RTT);
    assert_int_equal(sent_at(RTT, numbers, 3), 3);
    assert_int_equal(numbers[0], EAGER_CELLS);
    ack(outgoing.carrier - 1, EAGER_CELLS, EAGER_CELLS + 4096, 2 * RTT);
    take_delivered();
    assert_true(sent_at(2 * RTT, numbers, 1024) >= 7);
    assert_int_equal(outgoing.unsent, outgoing.next);
}

static void test_places_of_longer_messages(void **state)
{
    (void)state;
    uint32_t numbers[128];
    add_many(1, EAGER_CELL_BYTES + 1);
    add_many(EAGER_CELLS / 32, EAGER_MAX);
    assert_int_equal(sent_at(0, numbers, 128), 1 + 15 * EAGER_UNITS_MAX); /* as the window has it */
    ack(outgoing.carrier - 1, 1, 1, RTT);
    take_delivered();
    assert_int_equal(outgoing.cells, 15 * 32);
}

/* Long messages are acknowledged by others: that they have receives is learned from those. */
static void test_places_after_long_messages(void **state)
{
    (void)state;
    uint32_t numbers[8];
    for (uint32_t i = 0; i < 3 * EAGER_CELLS; i++) {
        add_many(1, EAGER_MAX + 1);
        outgoing_on_receive(&outgoing, FIRST + i);
        outgoing_forget(&outgoing, FIRST + i);
    }
    add_many(1, 64);
    assert_int_equal(sent_at(0, numbers, 8), 1);
}

/* Nothing is in flight, so no acknowledgement would come by itself. */
static void test_asks_for_places(void **state)
{
    (void)state;
    struct eager_packet packet;
    lh_time now = LH_NS_PER_S;
    for (uint32_t i = 0; i < EAGER_CELLS; i++) {
        add_many(1, EAGER_MAX + 1);
        outgoing_forget(&outgoing, FIRST + i); /* canceled */
    }
    add_many(1, 64);
    assert_false(fill(&packet, now));
    assert_int_equal(outgoing.due_ns, now);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(fill(&packet, now));
        assert_int_equal(packet.flags, EAGER_PROBE);
        lh_time interval_ns = test_outgoing_path.overdue_ns << (i + 1);
        assert_false(fill(&packet, now + interval_ns - 1));
        assert_true(outgoing.due_ns <= now + interval_ns);
        now += interval_ns;
    }
    ack(outgoing.carrier - 1, 0, 1, now);
    assert_true(fill(&packet, now));
    assert_true(packet.flags & EAGER_HAS_ENTRIES);
}

/* Its cells are not counted any more, though it was not sent whole. */
static void test_places_of_a_part(void **state)
{
    (void)state;
    static uint8_t out[EAGER_BYTES_MAX];
    struct eager_writer writer;
    add_many(1, EAGER_MAX);
    eager_write_begin(&writer, out, EAGER_BYTES_MAX, outgoing.carrier, NULL);
    assert_true(outgoing_fill(&outgoing, &test_outgoing_path, 0, &writer));
    assert_int_equal(outgoing.cells, EAGER_MAX / EAGER_CELL_BYTES);
    assert_int_equal(outgoing.unsent, FIRST);
    ack(0, 0, 1, RTT);
    assert_int_equal(outgoing.cells, 0);
}

static void test_window(void **state)
{
    (void)state;
    uint32_t numbers[8192];
    add_many(1, 64);
    sent_at(0, numbers, 1);
    ack(0, 1, 4096, 0);
    take_delivered();
    add_many(4000, 64);
    uint32_t sent = sent_at(0, numbers, 8192);
    assert_int_equal(sent, test_outgoing_path.window_bytes / 67);
}

/* What was reordered is sent again a round trip and the reorder window after it left, not before. */
static void test_resends_what_was_overtaken(void **state)
{
    (void)state;
    uint32_t numbers[64];
    add_many(1, 64);
    outgoing.loss = 0; /* no copies */
    assert_int_equal(sent_at(0, numbers, 64), 1);
    add_many(1, 64);
    assert_int_equal(sent_at(1000, numbers, 64), 1);
    struct eager_ack one = ack_of(1, 0, 64);
    one.run_count = 2;
    one.runs[0] = (struct eager_run){EAGER_MISSING, 1};
    one.runs[1] = (struct eager_run){EAGER_DELIVERED, 1};
    assert_int_equal(outgoing_on_ack(&outgoing, &one, RTT), 0);
    take_delivered();
    assert_int_equal(sent_at(RTT, numbers, 64), 0);
    assert_int_equal(outgoing.due_ns, RTT + RTT / 8);
    assert_int_equal(sent_at(RTT + RTT / 8 - 1, numbers, 64), 0);
    assert_int_equal(sent_at(RTT + RTT / 8, numbers, 64), 1);
    assert_int_equal(numbers[0], 0);
    assert_int_equal(sent_at(RTT + RTT / 8, numbers, 64), 0);
}

/* One packet each time, that asks: a path that is cut is not flooded. */
static void test_overdue_doubles(void **state)
{
    (void)state;
    uint32_t numbers[64];
    add_many(40, 64);
    outgoing.loss = 0;
    assert_int_equal(sent_at(0, numbers, 64), 40);
    lh_time last = 0, interval = test_outgoing_path.overdue_ns;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(outgoing.due_ns, last + interval);
        struct eager_packet packet;
        assert_true(fill(&packet, last + interval));
        assert_true(packet.flags & EAGER_PROBE);
        assert_false(fill(&packet, last + interval));
        last += interval;
        interval *= 2;
    }
    ack(outgoing.carrier - 1, 1, 1, last);
    assert_int_equal(outgoing.backoff, 0);
}

/* Nor is a receiver that answers, and does not take the message. */
static void test_answers_without_progress(void **state)
{
    (void)state;
    uint32_t numbers[4];
    add_many(1, 64);
    outgoing.loss = 0;
    assert_int_equal(sent_at(0, numbers, 4), 1);
    lh_time now = 0, interval = test_outgoing_path.overdue_ns;
    for (int i = 0; i < 5; i++) {
        ack(outgoing.carrier - 1, 0, 0, now);
        assert_int_equal(sent_at(now + interval - 1, numbers, 4), 0);
        now += interval;
        assert_int_equal(sent_at(now, numbers, 4), 1);
        interval *= 2;
    }
}

static void test_copies_where_packets_get_lost(void **state)
{
    (void)state;
    uint32_t numbers[64];
    add_many(1, 64);
    assert_int_equal(sent_at(0, numbers, 64), 1);
    assert_int_equal(outgoing.due_ns, RTT / 16);
    assert_int_equal(sent_at(RTT / 16, numbers, 64), 1); /* nothing is known of losses */
    assert_int_equal(sent_at(RTT / 2, numbers, 64), 0);
    ack(1, 1, 1, RTT);
    take_delivered();
    add_many(1, 64);
    outgoing.loss = 0;
    assert_int_equal(sent_at(2 * RTT, numbers, 64), 1);
    assert_int_equal(sent_at(2 * RTT + RTT / 2, numbers, 64), 0);
    outgoing.loss = 0.01;
    add_many(1, 64);
    assert_int_equal(sent_at(2 * RTT + RTT / 2, numbers, 64), 1);
    assert_int_equal(sent_at(2 * RTT + RTT / 2 + RTT / 16, numbers, 64), 1);
    assert_int_equal(numbers[0], 2);
}

static void test_no_copies_of_bulk_or_on_short_paths(void **state)
{
    (void)state;
    uint32_t numbers[512];
    add_many(300, 64);
    assert_int_equal(sent_at(0, numbers, 512), 300);
    assert_in_range(sent_at(RTT / 16, numbers, 512), 200, 260); /* those before 16 KiB were in flight */
}

static void send_and_lose(uint32_t carriers, uint32_t *received, uint32_t one_of)
{
    struct eager_packet packet;
    for (uint32_t i = 1; i <= carriers; i++) {
        add_many(1, 64);
        assert_true(fill(&packet, i));
        struct eager_ack one = ack_of(packet.carrier, packet.carrier + 1, packet.carrier + 1);
        one.received = *received += i % one_of != 0;
        assert_int_equal(outgoing_on_ack(&outgoing, &one, i), 0);
        take_delivered();
    }
}

static void test_measures_losses(void **state)
{
    (void)state;
    uint32_t received = 0;
    send_and_lose(480, &received, UINT32_MAX);
    assert_true(outgoing.loss > 1e-4); /* a few that arrive prove nothing: 512 do (docs/connections.md) */
    send_and_lose(32, &received, UINT32_MAX);
    assert_true(outgoing.loss < 1e-4);
    send_and_lose(320, &received, 32);
    assert_true(outgoing.loss > 0.02 && outgoing.loss < 0.04);
}

static void test_long_messages(void **state)
{
    (void)state;
    struct eager_packet packet;
    struct eager_entry entry;
    add_many(1, EAGER_MAX + 1);
    add_many(1, 64);
    add_many(1, EAGER_MAX + 1);
    uint32_t numbers[16];
    assert_int_equal(sent_at(0, numbers, 16), 1);
    assert_int_equal(numbers[0], 1);
    outgoing_announce(&outgoing, FIRST);     /* it was passed */
    outgoing_announce(&outgoing, FIRST + 1); /* it is none */
    outgoing_announce(&outgoing, FIRST + 2);
    outgoing_announce(&outgoing, FIRST + 3); /* there is none */
    assert_true(fill(&packet, 1));
    assert_true(eager_next_entry(&packet, &entry) && entry.is_long && entry.message == FIRST);
    assert_true(eager_next_entry(&packet, &entry) && entry.is_long && entry.message == FIRST + 2);
    struct eager_ack one = ack_of(1, 0, 0);
    one.run_count = 1;
    one.runs[0] = (struct eager_run){EAGER_OTHER, 3};
    assert_int_equal(outgoing_on_ack(&outgoing, &one, 2), 0);
    assert_int_equal(outgoing.missing, 0);
    outgoing_announce(&outgoing, FIRST); /* the receiver knows */
    assert_false(fill(&packet, LH_NS_PER_S));
    for (uint32_t i = 0; i < 3; i++)
        outgoing_forget(&outgoing, FIRST + i);
    assert_int_equal(outgoing.oldest, FIRST + 3);
}

/* An announcement that waits for the window when the clear-to-send comes is not needed: what is acknowledged
 * beyond that message may be true. */
static void test_announcement_that_is_too_late(void **state)
{
    (void)state;
    uint32_t numbers[16];
    add_many(1, 64);
    assert_int_equal(sent_at(0, numbers, 16), 1);
    add_many(1, EAGER_MAX + 1);
    outgoing_announce(&outgoing, FIRST + 1);
    struct eager_ack one = ack_of(0, 2, 2); /* over, and never sent */
    assert_int_equal(outgoing_on_ack(&outgoing, &one, RTT), -1);
    outgoing_on_receive(&outgoing, FIRST + 1);
    assert_int_equal(outgoing_on_ack(&outgoing, &one, RTT), 0);
    assert_int_equal(take_delivered(), 1);
    assert_int_equal(sent_at(RTT, numbers, 16), 0);
}

static void test_asks_after_what_is_held(void **state)
{
    (void)state;
    struct eager_packet packet;
    uint32_t numbers[4];
    add_many(1, 64);
    outgoing.loss = 0;
    sent_at(0, numbers, 4);
    struct eager_ack one = ack_of(0, 0, 0);
    one.run_count = 1;
    one.runs[0] = (struct eager_run){EAGER_HELD, 1};
    assert_int_equal(outgoing_on_ack(&outgoing, &one, RTT), 0);
    assert_false(fill(&packet, RTT + test_outgoing_path.overdue_ns - 1));
    assert_true(fill(&packet, RTT + test_outgoing_path.overdue_ns));
    assert_int_equal(packet.flags, EAGER_PROBE);
    assert_false(fill(&packet, RTT + 3 * test_outgoing_path.overdue_ns - 1));
    assert_true(fill(&packet, RTT + 3 * test_outgoing_path.overdue_ns));
}

static void test_forgets_what_is_canceled(void **state)
{
    (void)state;
    uint32_t numbers[16];
    add_many(4, 64);
    outgoing_forget(&outgoing, FIRST + 1);
    outgoing_forget(&outgoing, FIRST + 1);
    assert_int_equal(sent_at(0, numbers, 16), 3);
    outgoing_forget(&outgoing, FIRST);
    assert_int_equal(outgoing.oldest, FIRST + 2);
    outgoing_forget(&outgoing, FIRST + 3);
    outgoing_forget(&outgoing, FIRST + 2);
    assert_int_equal(outgoing.missing, 0);
    assert_int_equal(outgoing.in_flight_bytes, 0);
    assert_int_equal(sent_at(LH_NS_PER_S, numbers, 16), 0);
}

/* Receives may be canceled before their messages are sent. */
static void test_over_before_it_is_added(void **state)
{
    (void)state;
    uint32_t numbers[16];
    add_many(2, 64);
    assert_int_equal(sent_at(0, numbers, 16), 2);
    ack(0, 5, 6, RTT);
    assert_int_equal(take_delivered(), 2);
    add_many(1, 64);
    outgoing_forget(&outgoing, FIRST + 2); /* as the refusal says that came before */
    ack(0, 5, 6, RTT);
    assert_int_equal(outgoing.delivered, 0);
}

static void test_refuses_acknowledgements_that_cannot_be(void **state)
{
    (void)state;
    uint32_t numbers[16];
    struct eager_ack one = ack_of(0, 0, 0);
    assert_int_equal(outgoing_on_ack(&outgoing, &one, 0), -1); /* nothing was ever sent */
    add_many(3, 64);
    assert_int_equal(outgoing_on_ack(&outgoing, &one, 0), -1);
    sent_at(0, numbers, 16);
    assert_int_equal(outgoing_on_ack(&outgoing, &one, 0), 0);
    one = ack_of(1, 0, 0);
    assert_int_equal(outgoing_on_ack(&outgoing, &one, 0), -1);
    add_many(1, 64);
    one = ack_of(0, 4, 4); /* over, and never sent */
    assert_int_equal(outgoing_on_ack(&outgoing, &one, 0), -1);
    one = ack_of(0, 0, 100000);
    assert_int_equal(outgoing_on_ack(&outgoing, &one, 0), -1);
    one = ack_of(0, 1, 0); /* over before it has a receive */
    assert_int_equal(outgoing_on_ack(&outgoing, &one, 0), -1);
    assert_int_equal(outgoing.missing, 3);
}

/* Whatever a peer acknowledges, nothing breaks, and nothing is delivered that was not sent. */
static void test_random_acknowledgements(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 5);
    uint32_t numbers[64];
    lh_time now = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        if (outgoing.next - outgoing.oldest < 60)
            add_many(1, lh_prng_below(&prng, 5) == 0 ? EAGER_MAX + 1 : lh_prng_below(&prng, 2000));
        now += lh_prng_below(&prng, RTT);
        sent_at(now, numbers, 64);
        struct eager_ack one = ack_of(outgoing.carrier - 1 - (uint32_t)lh_prng_below(&prng, 3), 0, 0);
        one.base = outgoing.oldest + (uint32_t)lh_prng_below(&prng, 6) - 2;
        one.posted = one.base + (uint32_t)lh_prng_below(&prng, 100);
        one.received = (uint32_t)lh_prng_next(&prng);
        one.run_count = (uint32_t)lh_prng_below(&prng, 8);
        for (uint32_t r = 0; r < one.run_count; r++)
            one.runs[r] = (struct eager_run){(enum eager_state)lh_prng_below(&prng, 4),
                                             1 + (uint32_t)lh_prng_below(&prng, 20)};
        outgoing_on_ack(&outgoing, &one, now);
        take_delivered();
        outgoing_forget(&outgoing, outgoing.oldest); /* a user who loses patience */
        assert_true(outgoing.cells <= EAGER_CELLS);
        assert_true(outgoing.loss >= 0 && outgoing.loss <= 1);
    }
}

/* ---- against a receiver, over a path that loses, doubles and reorders -------------------------------- */

#define MESSAGES    600u
#define FLYING_MAX  4096u
#define LOST_CHANCE 20u /* one of */

struct flying {
    bool on;
    bool is_ack;
    lh_time at;
    size_t bytes;
    uint8_t data[EAGER_BYTES_MAX];
    struct eager_ack ack;
};

static struct flying flying[FLYING_MAX];
static struct lh_prng path_prng;

static void fly(struct flying what, lh_time now)
{
    uint64_t copies = lh_prng_below(&path_prng, 10) == 0 ? 2 : 1;
    for (uint64_t c = 0; c < copies; c++) {
        if (lh_prng_below(&path_prng, LOST_CHANCE) == 0)
            continue;
        uint32_t place = 0;
        while (place < FLYING_MAX && flying[place].on)
            place++;
        assert_true(place < FLYING_MAX);
        flying[place] = what;
        flying[place].on = true;
        flying[place].at = now + RTT / 2 + lh_prng_below(&path_prng, RTT / 10);
    }
}

struct receiver {
    struct early early;
    struct early_memory memory;
    struct inbound inbound;
    uint32_t base;
    uint32_t posted;
    uint8_t units[MESSAGES];
    bool delivered[MESSAGES];
    uint8_t bytes[MESSAGES][2048];
};

static struct receiver receiver;
static uint64_t sizes[MESSAGES];

static void deliver(uint32_t index)
{
    receiver.delivered[index] = receiver.units[index] == eager_unit_mask(sizes[index]);
}

static void receive_entry(const struct eager_entry *entry)
{
    uint32_t index = entry->message - FIRST;
    assert_true(index < MESSAGES && entry->bytes == sizes[index]);
    assert_int_equal(entry->tag, entry->message % 3 == 0 ? entry->message + 1 : 0);
    inbound_on_message(&receiver.inbound, entry->message);
    if (index >= receiver.posted) {
        assert_int_not_equal(early_put(&receiver.early, FIRST + receiver.posted, entry), EARLY_REFUSED);
        return;
    }
    memcpy(receiver.bytes[index] + entry->unit * EAGER_UNIT_BYTES, entry->data, entry->data_bytes);
    receiver.units[index] |= (uint8_t)(1u << entry->unit);
    deliver(index);
}

static void post_receive(void)
{
    uint32_t index = receiver.posted++;
    const struct early_message *held = early_find(&receiver.early, FIRST + index);
    if (held) {
        early_copy(&receiver.early, held, receiver.bytes[index]);
        receiver.units[index] = held->units;
        early_forget(&receiver.early, FIRST + index);
        deliver(index);
    }
}

static enum eager_state state_of(uint32_t index)
{
    if (index < receiver.posted)
        return receiver.delivered[index] ? EAGER_DELIVERED : EAGER_MISSING;
    return early_state(&receiver.early, FIRST + index) == EARLY_WHOLE ? EAGER_HELD : EAGER_MISSING;
}

static void acknowledge(lh_time now)
{
    struct flying what = {.is_ack = true};
    while (receiver.base < receiver.posted && receiver.delivered[receiver.base])
        receiver.base++;
    what.ack = (struct eager_ack){.newest = receiver.inbound.newest,
                                  .received = receiver.inbound.received,
                                  .base = FIRST + receiver.base,
                                  .posted = FIRST + receiver.posted};
    for (uint32_t i = receiver.base; FIRST + i != receiver.inbound.seen_next; i++)
        if (!eager_ack_add(&what.ack, state_of(i)))
            break;
    fly(what, now);
}

static void arrive(struct flying *what, lh_time now)
{
    struct eager_packet packet;
    struct eager_entry entry;
    what->on = false;
    if (what->is_ack) {
        assert_int_equal(outgoing_on_ack(&outgoing, &what->ack, now), 0);
        return;
    }
    assert_int_equal(eager_decode(what->data, what->bytes, &packet), 0);
    inbound_on_carrier(&receiver.inbound, &packet, RTT, now);
    while (eager_next_entry(&packet, &entry))
        receive_entry(&entry);
    acknowledge(now);
}

static void send_all(lh_time now)
{
    struct eager_writer writer;
    struct flying what = {0};
    outgoing_poll(&outgoing, &test_outgoing_path, now);
    for (;;) {
        eager_write_begin(&writer, what.data, EAGER_BYTES_MAX, outgoing.carrier, NULL);
        if (!outgoing_fill(&outgoing, &test_outgoing_path, now, &writer))
            return;
        what.bytes = writer.bytes;
        fly(what, now);
    }
}

static void run_seed(uint64_t seed, bool late)
{
    struct lh_prng users;
    uint32_t over = 0;
    lh_prng_seed(&path_prng, seed);
    lh_prng_seed(&users, ~seed);
    memset(flying, 0, sizeof flying);
    memset(&receiver, 0, sizeof receiver);
    early_give_memory(&receiver.early, &receiver.memory);
    free(outgoing.ring);
    outgoing = (struct outgoing){0};
    for (uint32_t i = 0; i < MESSAGES; i++)
        sizes[i] = lh_prng_below(&users, lh_prng_below(&users, 8) == 0 ? 2048 : 100);
    lh_time now = 0;
    for (uint32_t turn = 0; over < MESSAGES; turn++, now += RTT / 200) {
        assert_true(turn < 200 * 200);
        if (!outgoing.used || (outgoing.next - FIRST < MESSAGES && lh_prng_below(&users, 3) == 0))
            add(FIRST + (outgoing.used ? outgoing.next - FIRST : 0),
                sizes[outgoing.used ? outgoing.next - FIRST : 0]);
        if (receiver.posted < MESSAGES && lh_prng_below(&users, late ? 12 : 2) == 0)
            post_receive();
        for (uint32_t i = 0; i < FLYING_MAX; i++)
            if (flying[i].on && flying[i].at <= now)
                arrive(&flying[i], now);
        over += take_delivered();
        send_all(now);
    }
    for (uint32_t i = 0; i < MESSAGES; i++) {
        assert_true(receiver.delivered[i]);
        assert_memory_equal(receiver.bytes[i], outgoing_payload + (FIRST + i) % 4096, sizes[i]);
    }
    assert_int_equal(receiver.early.held, 0);
    assert_int_equal(outgoing.cells, 0);
}

static void test_delivers_all(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++)
        run_seed(seed, seed % 2 == 0);
}

/* Numbers that a peer, or a late packet, makes up: behind the last message, in the place of the first. */
static void test_messages_that_are_not_there(void **state)
{
    (void)state;
    add_many(4, 64);
    assert_int_equal(outgoing.capacity, 4);
    const struct outgoing_message *first = &outgoing.ring[FIRST & 3];
    outgoing_stop(&outgoing, FIRST + 4);
    outgoing_forget(&outgoing, FIRST + 4);
    outgoing_on_receive(&outgoing, FIRST - 4);
    outgoing_announce(&outgoing, FIRST + 4);
    assert_int_equal(first->state, OUTGOING_NEW);
    assert_ptr_equal(first->payload, outgoing_payload + FIRST % 4096);
    assert_int_equal(outgoing.oldest, FIRST);
}

static int run_outgoing(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_many_share_a_carrier),
        TEST(test_last_units_share_a_carrier),
        TEST(test_what_is_begun_is_sent),
        TEST(test_what_was_begun_gives_its_places_back),
        TEST(test_delivered_out_of_order),
        TEST(test_waits_for_places),
        TEST(test_places_of_longer_messages),
        TEST(test_places_after_long_messages),
        TEST(test_asks_for_places),
        TEST(test_places_of_a_part),
        TEST(test_window),
        TEST(test_resends_what_was_overtaken),
        TEST(test_overdue_doubles),
        TEST(test_answers_without_progress),
        TEST(test_copies_where_packets_get_lost),
        TEST(test_no_copies_of_bulk_or_on_short_paths),
        TEST(test_measures_losses),
        TEST(test_long_messages),
        TEST(test_announcement_that_is_too_late),
        TEST(test_asks_after_what_is_held),
        TEST(test_forgets_what_is_canceled),
        TEST(test_messages_that_are_not_there),
        TEST(test_over_before_it_is_added),
        TEST(test_refuses_acknowledgements_that_cannot_be),
        TEST(test_random_acknowledgements),
        TEST(test_delivers_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test outgoing matched ------------------------------------------------------------------------- */

/* Small messages to a peer whose receives choose messages. */

#define OUTGOING_MATCHED_RTT (20 * LH_NS_PER_MS)
#define CAPACITY             1024u

static const struct outgoing_path path = {
    .rtt_ns = OUTGOING_MATCHED_RTT,
    .rtt_minimum_ns = OUTGOING_MATCHED_RTT,
    .overdue_ns = OUTGOING_MATCHED_RTT + OUTGOING_MATCHED_RTT / 8,
    .reorder_window_ns = OUTGOING_MATCHED_RTT / 8,
    .window_bytes = 65536,
};
static struct outgoing outgoing;
static uint8_t outgoing_matched_payload[1];

static void outgoing_matched_add(uint64_t bytes)
{
    const struct outgoing_content content = {
        .payload = outgoing_matched_payload, .bytes = bytes, .is_long = bytes > EAGER_MAX};
    outgoing_add(&outgoing, outgoing.used ? outgoing.next : FIRST, &content);
}

/* How many entries leave now, of all packets; *last: of which message the last one is, from FIRST. */
static uint32_t outgoing_matched_sent_at(lh_time now, uint32_t *last)
{
    uint32_t count = 0;
    outgoing_poll(&outgoing, &path, now);
    for (;;) {
        uint8_t out[EAGER_BYTES_MAX];
        struct eager_writer writer;
        struct eager_packet packet;
        struct eager_entry entry;
        eager_write_begin(&writer, out, EAGER_BYTES_MAX, outgoing.carrier, NULL);
        if (!outgoing_fill(&outgoing, &path, now, &writer))
            return count;
        assert_int_equal(eager_decode(out, writer.bytes, &packet), 0);
        while (eager_next_entry(&packet, &entry)) {
            *last = entry.message - FIRST;
            count++;
        }
    }
}

/* Messages from FIRST + base on are all in this state. */
static void tell(uint32_t base, enum eager_state known, uint32_t messages, bool is_part)
{
    const struct eager_ack ack = {
        .newest = outgoing.carrier - 1,
        .received = outgoing.carrier,
        .base = FIRST + base,
        .posted = FIRST + base,
        .is_part = is_part,
        .run_count = 1,
        .runs = {{known, messages}},
    };
    assert_int_equal(outgoing_on_ack(&outgoing, &ack, OUTGOING_MATCHED_RTT), 0);
}

/* Each message takes a place until it has a receive: a long one, too, which is announced. */
static void places_until_matched(void **state)
{
    (void)state;
    uint32_t last = 0;
    outgoing = (struct outgoing){.matched = true};
    outgoing_move(&outgoing, calloc(1, outgoing_ring_bytes(CAPACITY)), CAPACITY);
    outgoing_matched_add(EAGER_MAX + 1);
    outgoing_matched_add(EAGER_MAX + 1);
    for (uint32_t i = 0; i < EAGER_CELLS + 2; i++)
        outgoing_matched_add(1);
    outgoing.loss = 0; /* no copies */
    assert_int_equal(outgoing_matched_sent_at(0, &last), EAGER_CELLS);
    assert_int_equal(last, EAGER_CELLS - 1);
    assert_int_equal(outgoing.cells, EAGER_CELLS);
    tell(0, EAGER_HELD, EAGER_CELLS, false);
    assert_int_equal(outgoing.held, EAGER_CELLS);
    assert_int_equal(outgoing_matched_sent_at(OUTGOING_MATCHED_RTT, &last), 0);
    tell(1, EAGER_OTHER, 1, true); /* the second has its receive; nothing is known of the first */
    assert_int_equal(outgoing.cells, EAGER_CELLS - 1);
    assert_int_equal(outgoing_matched_sent_at(OUTGOING_MATCHED_RTT, &last), 1);
    assert_int_equal(last, EAGER_CELLS);
    outgoing_on_receive(&outgoing, FIRST); /* so has the first, by its clear-to-send */
    assert_int_equal(outgoing.cells, EAGER_CELLS - 1);
    outgoing_stop(&outgoing, FIRST + 5); /* aborted: its place is free when the receiver answers */
    assert_int_equal(outgoing_matched_sent_at(OUTGOING_MATCHED_RTT, &last), 1);
    assert_int_equal(outgoing_matched_sent_at(OUTGOING_MATCHED_RTT, &last), 0);
    outgoing_forget(&outgoing, FIRST + 5);
    assert_int_equal(outgoing.cells, EAGER_CELLS - 1);
    assert_false(outgoing_next_delivered(&outgoing, &(uint32_t){FIRST}));
    free(outgoing.ring);
}

static int run_outgoing_matched(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(places_until_matched)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_outgoing() + run_outgoing_matched();
}
