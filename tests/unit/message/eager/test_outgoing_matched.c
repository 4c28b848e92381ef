/*
 * test_outgoing_matched.c - small messages to a peer whose receives choose messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/eager/outgoing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define RTT      (20 * LH_NS_PER_MS)
#define FIRST    0xFFFFFFC0u /* of the messages: numbers wrap */
#define CAPACITY 1024u

static const struct outgoing_path path = {
    .rtt_ns = RTT,
    .rtt_minimum_ns = RTT,
    .overdue_ns = RTT + RTT / 8,
    .reorder_window_ns = RTT / 8,
    .window_bytes = 65536,
};
static struct outgoing outgoing;
static uint8_t payload[1];

static void add(uint64_t bytes)
{
    const struct outgoing_content content = {
        .payload = payload, .bytes = bytes, .is_long = bytes > EAGER_MAX};
    outgoing_add(&outgoing, outgoing.used ? outgoing.next : FIRST, &content);
}

/* How many entries leave now, of all packets; *last: of which message the last one is, from FIRST. */
static uint32_t sent_at(lh_time now, uint32_t *last)
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
    assert_int_equal(outgoing_on_ack(&outgoing, &ack, RTT), 0);
}

/* Each message takes a place until it has a receive: a long one, too, which is announced. */
static void places_until_matched(void **state)
{
    (void)state;
    uint32_t last = 0;
    outgoing = (struct outgoing){.matched = true};
    outgoing_move(&outgoing, calloc(1, outgoing_ring_bytes(CAPACITY)), CAPACITY);
    add(EAGER_MAX + 1);
    add(EAGER_MAX + 1);
    for (uint32_t i = 0; i < EAGER_CELLS + 2; i++)
        add(1);
    outgoing.loss = 0; /* no copies */
    assert_int_equal(sent_at(0, &last), EAGER_CELLS);
    assert_int_equal(last, EAGER_CELLS - 1);
    assert_int_equal(outgoing.cells, EAGER_CELLS);
    tell(0, EAGER_HELD, EAGER_CELLS, false);
    assert_int_equal(outgoing.held, EAGER_CELLS);
    assert_int_equal(sent_at(RTT, &last), 0);
    tell(1, EAGER_OTHER, 1, true); /* the second has its receive; nothing is known of the first */
    assert_int_equal(outgoing.cells, EAGER_CELLS - 1);
    assert_int_equal(sent_at(RTT, &last), 1);
    assert_int_equal(last, EAGER_CELLS);
    outgoing_on_receive(&outgoing, FIRST); /* so has the first, by its clear-to-send */
    assert_int_equal(outgoing.cells, EAGER_CELLS - 1);
    outgoing_stop(&outgoing, FIRST + 5); /* aborted: its place is free when the receiver answers */
    assert_int_equal(sent_at(RTT, &last), 1);
    assert_int_equal(sent_at(RTT, &last), 0);
    outgoing_forget(&outgoing, FIRST + 5);
    assert_int_equal(outgoing.cells, EAGER_CELLS - 1);
    assert_false(outgoing_next_delivered(&outgoing, &(uint32_t){FIRST}));
    free(outgoing.ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(places_until_matched)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
