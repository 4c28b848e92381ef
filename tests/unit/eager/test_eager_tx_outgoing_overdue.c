/*
 * test_eager_tx_outgoing_overdue.c - how long a small message waits for its acknowledgement, where the
 * round trip turns out longer meanwhile, and how many copies it has behind a burst of losses.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "eager/eager_tx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define OVERDUE (10 * LH_NS_PER_MS)

static const struct outgoing_path path = {
    .rtt_ns = OVERDUE,
    .rtt_minimum_ns = OVERDUE,
    .overdue_ns = OVERDUE,
    .reorder_window_ns = OVERDUE / 8,
    .window_bytes = 65536,
};

static void send_at(struct outgoing *outgoing, lh_time now)
{
    uint8_t data[256];
    struct eager_writer writer;
    outgoing_poll(outgoing, &path, now);
    eager_write_begin(&writer, data, sizeof data, outgoing->carrier, NULL);
    assert_true(outgoing_fill(outgoing, &path, now, &writer));
}

/* The wait is not doubled as often as shorter ones were before: a clock may have jumped in a measurement. */
static void test_longer_round_trip(void **state)
{
    (void)state;
    void *ring = calloc(1, outgoing_ring_bytes(4));
    const struct outgoing_content content = {.payload = (const uint8_t *)"x", .bytes = 1};
    struct outgoing outgoing = {0};
    struct outgoing_path longer = path;
    longer.overdue_ns = 100 * OVERDUE;
    outgoing_move(&outgoing, ring, 4);
    outgoing_add(&outgoing, 0, &content);
    outgoing.loss = 0; /* no copies */
    send_at(&outgoing, 0);
    for (int i = 0; i < 3; i++)
        send_at(&outgoing, outgoing.due_ns);
    lh_time now = (1 + 2 + 4 + 8) * OVERDUE;
    assert_int_equal(outgoing.due_ns, now);
    outgoing_poll(&outgoing, &longer, now);
    assert_int_equal(outgoing.due_ns, (1 + 2 + 4) * OVERDUE + longer.overdue_ns);
    free(ring);
}

static void acknowledge(struct outgoing *outgoing, uint32_t received, uint32_t messages, lh_time now)
{
    const struct eager_ack ack = {
        .newest = outgoing->carrier - 1, .received = received, .base = messages, .posted = messages};
    assert_int_equal(outgoing_on_ack(outgoing, &ack, now), 0);
    for (uint32_t n = 0; outgoing_next_delivered(outgoing, &n);)
        outgoing_forget(outgoing, n);
}

/* When something is sent next; it is. */
static lh_time send_next(struct outgoing *outgoing)
{
    uint8_t data[256];
    struct eager_writer writer;
    for (int polls = 0; polls < 3; polls++) { /* some find that all is sent */
        lh_time now = outgoing->due_ns;
        outgoing_poll(outgoing, &path, now);
        eager_write_begin(&writer, data, sizeof data, outgoing->carrier, NULL);
        if (outgoing_fill(outgoing, &path, now, &writer))
            return now;
    }
    fail();
    return 0;
}

/* A message was lost, and its copy, too: it and the next one have many, close together, while little is in
 * flight; but a path that is cut is not flooded. */
static void test_many_copies_behind_a_burst(void **state)
{
    (void)state;
    enum { COPIES = 32 };
    void *ring = calloc(1, outgoing_ring_bytes(4));
    const struct outgoing_content content = {.payload = (const uint8_t *)"x", .bytes = 1};
    struct outgoing outgoing = {0};
    outgoing_move(&outgoing, ring, 4);
    outgoing_add(&outgoing, 0, &content);
    send_at(&outgoing, 0);
    lh_time last = send_next(&outgoing), wait = OVERDUE;
    assert_int_equal(last, OVERDUE / 16);
    for (int i = 0; i < 3; i++, wait *= 2) {
        assert_int_equal(send_next(&outgoing), last + wait);
        last += wait;
        for (int copies = 0; copies < COPIES; copies++, last += OVERDUE / 128)
            assert_int_equal(send_next(&outgoing), last + OVERDUE / 128);
    }
    assert_int_equal(send_next(&outgoing), last + wait);
    assert_int_equal(send_next(&outgoing), last + 3 * wait);
    last += 4 * wait;
    acknowledge(&outgoing, 1, 1, last);
    outgoing_add(&outgoing, 1, &content);
    send_at(&outgoing, last);
    for (int copies = 0; copies < COPIES; copies++, last += OVERDUE / 128)
        assert_int_equal(send_next(&outgoing), last + OVERDUE / 128);
    assert_int_equal(send_next(&outgoing), last + OVERDUE);
    free(ring);
}

/* The receiver was away; its clear-to-send shows that it is back: what is held is not asked for as rarely as
 * what was overdue meanwhile. */
static void test_held_after_a_clear_to_send(void **state)
{
    (void)state;
    void *ring = calloc(1, outgoing_ring_bytes(4));
    const struct outgoing_content small = {.payload = (const uint8_t *)"x", .bytes = 1};
    const struct outgoing_content large = {.bytes = EAGER_MAX + 1, .is_long = true};
    const struct eager_ack held = {
        .received = 1, .run_count = 1, .runs[0] = {.state = EAGER_HELD, .messages = 1}};
    struct outgoing outgoing = {0};
    outgoing_move(&outgoing, ring, 4);
    outgoing_add(&outgoing, 0, &small);
    outgoing.loss = 0; /* no copies */
    send_at(&outgoing, 0);
    assert_int_equal(outgoing_on_ack(&outgoing, &held, OVERDUE), 0);
    outgoing_add(&outgoing, 1, &large);
    outgoing_announce(&outgoing, 1);
    send_at(&outgoing, OVERDUE);
    lh_time now = OVERDUE;
    for (int i = 0; i < 5; i++)
        now = send_next(&outgoing);
    assert_true(outgoing.due_ns > now + 10 * OVERDUE);
    outgoing_on_receive(&outgoing, 1);
    outgoing_forget(&outgoing, 1);
    send_at(&outgoing, now + OVERDUE);
    assert_int_equal(outgoing.due_ns, now + 2 * OVERDUE);
    free(ring);
}

/* Where nothing was lost for long a silence may be a longer round trip; the answer shows whether it was a
 * loss. */
static void test_burst_that_the_answer_shows(void **state)
{
    (void)state;
    const uint32_t received[] = {2, 1}; /* of two carriers */
    for (int lost = 0; lost < 2; lost++) {
        void *ring = calloc(1, outgoing_ring_bytes(4));
        const struct outgoing_content content = {.payload = (const uint8_t *)"x", .bytes = 1};
        struct outgoing outgoing = {0};
        outgoing_move(&outgoing, ring, 4);
        outgoing_add(&outgoing, 0, &content);
        outgoing.loss = 0;
        send_at(&outgoing, 0);
        assert_int_equal(send_next(&outgoing), OVERDUE);
        assert_int_equal(outgoing.carrier, 2);
        acknowledge(&outgoing, received[lost], 1, 2 * OVERDUE);
        outgoing_add(&outgoing, 1, &content);
        send_at(&outgoing, 2 * OVERDUE);
        assert_int_equal(send_next(&outgoing), 2 * OVERDUE + (lost ? OVERDUE / 128 : OVERDUE));
        free(ring);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_longer_round_trip),
                                       cmocka_unit_test(test_many_copies_behind_a_burst),
                                       cmocka_unit_test(test_held_after_a_clear_to_send),
                                       cmocka_unit_test(test_burst_that_the_answer_shows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
