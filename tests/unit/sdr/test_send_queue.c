/*
 * test_send_queue_send_queue.c - announcing receives until acknowledged, and using announcements in order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/send_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/bitmap.h"
#include "base/prng.h"

#define SIZE     8u
#define ROOM     16u
#define OVERDUE  (40 * LH_NS_PER_MS)
#define NEAR_END (UINT32_MAX - 3) /* sequences wrap after a few */

struct sides {
    struct cts_announcement announced[SIZE];
    struct control_cts received[SIZE];
    uint64_t present[1];
    struct cts_announcer announcer;
    struct cts_queue queue;
};

static void setup(struct sides *s, uint32_t first)
{
    memset(s, 0, sizeof *s);
    cts_announcer_init(&s->announcer, SIZE);
    cts_queue_init(&s->queue, s->present, SIZE);
    s->announcer.ring.entries = (uint8_t *)s->announced;
    s->queue.ring.entries = (uint8_t *)s->received;
    s->announcer.ring.size = s->queue.ring.size = SIZE;
    s->announcer.next = s->announcer.announced = s->announcer.acked = first;
    s->queue.next_use = s->queue.received = first;
}

/* The slot tells entries apart. */
static bool announce(struct sides *s, uint16_t slot)
{
    struct control_cts entry = {.slot = slot};
    return cts_announce(&s->announcer, &entry);
}

static uint32_t collect(struct sides *s, lh_time now, lh_time overdue, struct control_cts *out,
                        uint32_t *repeated)
{
    return cts_collect(&s->announcer, now, overdue, out, ROOM, repeated);
}

/* The n-th wait for an answer: as many as PATIENT as long as the first, then doubled, up to 2^6. */
static lh_time wait_of(uint32_t n)
{
    uint32_t doublings = n < CTS_PATIENT_WAITS ? 0 : n - CTS_PATIENT_WAITS + 1;
    return OVERDUE << (doublings < 6 ? doublings : 6);
}

/* ---- announcing ---- */

static void test_window_fills_and_moves(void **state)
{
    (void)state;
    const uint32_t starts[] = {0, NEAR_END};
    for (uint32_t i = 0; i < 2; i++) {
        struct sides s;
        struct control_cts out[ROOM];
        uint32_t repeated;
        setup(&s, starts[i]);
        for (uint16_t slot = 0; slot < SIZE; slot++)
            assert_true(announce(&s, slot));
        assert_false(announce(&s, 99));
        assert_int_equal(collect(&s, 0, OVERDUE, out, &repeated), SIZE);
        assert_int_equal(repeated, 0);
        for (uint32_t e = 0; e < SIZE; e++) {
            assert_int_equal(out[e].sequence, starts[i] + e);
            assert_int_equal(out[e].slot, e);
        }
        assert_int_equal(collect(&s, 0, OVERDUE, out, &repeated), 0);
        assert_true(cts_on_ack(&s.announcer, starts[i] + 1, 0, OVERDUE));
        assert_true(announce(&s, 100));
        assert_false(announce(&s, 101));
        assert_int_equal(collect(&s, 0, OVERDUE, out, &repeated), 1);
        assert_int_equal(out[0].sequence, starts[i] + SIZE);
        assert_int_equal(out[0].slot, 100);
    }
}

static void test_invalid_ack_is_ignored(void **state)
{
    (void)state;
    const uint32_t starts[] = {0, NEAR_END, 1000};
    for (uint32_t i = 0; i < 3; i++) {
        struct sides s;
        struct control_cts out[ROOM];
        uint32_t repeated, first = starts[i];
        setup(&s, first);
        assert_false(cts_on_ack(&s.announcer, first, 0, OVERDUE));
        assert_false(cts_on_ack(&s.announcer, first + 1, 0, OVERDUE)); /* nothing was announced */
        for (uint16_t slot = 0; slot < 4; slot++)
            announce(&s, slot);
        assert_false(cts_on_ack(&s.announcer, first + 1, 0, OVERDUE)); /* nothing was sent */
        collect(&s, 0, OVERDUE, out, &repeated);
        assert_false(cts_on_ack(&s.announcer, first + 5, 0, OVERDUE));
        assert_false(cts_on_ack(&s.announcer, first + 0x7FFFFFFF, 0, OVERDUE));
        assert_false(cts_on_ack(&s.announcer, first + 0x80000000u, 0, OVERDUE));
        assert_false(cts_on_ack(&s.announcer, first - 1, 0, OVERDUE));
        assert_int_equal(s.announcer.acked, first);
        assert_true(cts_on_ack(&s.announcer, first + 3, 0, OVERDUE));
        assert_false(cts_on_ack(&s.announcer, first + 3, 0, OVERDUE)); /* again */
        assert_false(cts_on_ack(&s.announcer, first + 2, 0, OVERDUE)); /* late */
        assert_int_equal(s.announcer.acked, first + 3);
    }
}

static void test_repeat_at_expiry(void **state)
{
    (void)state;
    struct sides s;
    struct control_cts out[ROOM];
    uint32_t repeated;
    setup(&s, 0);
    assert_int_equal(cts_announcer_next(&s.announcer), LH_TIME_NEVER);
    announce(&s, 1);
    announce(&s, 2);
    assert_int_equal(cts_announcer_next(&s.announcer), 0);
    assert_int_equal(collect(&s, 1000, OVERDUE, out, &repeated), 2);
    lh_time expiry = 1000;
    for (uint32_t turn = 0; turn < 14; turn++) {
        expiry += wait_of(turn);
        assert_int_equal(cts_announcer_next(&s.announcer), expiry);
        assert_int_equal(collect(&s, expiry - 1, OVERDUE, out, &repeated), 0);
        assert_int_equal(collect(&s, expiry, OVERDUE, out, &repeated), 2);
        assert_int_equal(repeated, 2);
        assert_int_equal(out[0].slot, 1);
        assert_int_equal(out[1].slot, 2);
        assert_int_equal(collect(&s, expiry, OVERDUE, out, &repeated), 0);
    }
    /* Hearing of one starts the timer anew, without the backoff and in haste; hearing of all stops it. */
    assert_true(cts_on_ack(&s.announcer, 1, expiry + 5, OVERDUE));
    assert_int_equal(cts_announcer_next(&s.announcer), expiry + 5 + OVERDUE / CTS_HASTE);
    assert_int_equal(collect(&s, expiry + 5 + OVERDUE, OVERDUE, out, &repeated), 1);
    assert_int_equal(out[0].slot, 2);
    assert_true(cts_on_ack(&s.announcer, 2, expiry + 6 + OVERDUE, OVERDUE));
    assert_int_equal(cts_announcer_next(&s.announcer), LH_TIME_NEVER);
    assert_int_equal(collect(&s, LH_TIME_NEVER - 1, OVERDUE, out, &repeated), 0);
}

/* An answer that came late, for the first transmission was lost: from then on a loss costs 1/16 of an overdue
 * time, until so many answers came in time. Not on short paths. */
static void test_haste_behind_a_loss(void **state)
{
    (void)state;
    enum { MEMORY = CTS_HASTE_MEMORY };
    struct sides s;
    struct control_cts out[ROOM];
    uint32_t repeated, sequence = 0;
    const lh_time hasty = OVERDUE / CTS_HASTE, little = CTS_HASTE_MIN_NS - 1;
    setup(&s, 0);
    announce(&s, 1);
    collect(&s, 0, OVERDUE, out, &repeated);
    assert_int_equal(collect(&s, OVERDUE, OVERDUE, out, &repeated), 1);
    lh_time now = OVERDUE + 1;
    assert_true(cts_on_ack(&s.announcer, ++sequence, now, OVERDUE));
    announce(&s, 2);
    collect(&s, now, little, out, &repeated);
    assert_int_equal(cts_announcer_next(&s.announcer), now + little);
    assert_true(cts_on_ack(&s.announcer, ++sequence, now, little));
    for (uint32_t answers = 1; answers < MEMORY; answers++, now++) {
        announce(&s, 2);
        collect(&s, now, OVERDUE, out, &repeated);
        assert_int_equal(cts_announcer_next(&s.announcer), now + hasty);
        assert_true(cts_on_ack(&s.announcer, ++sequence, now, OVERDUE));
    }
    announce(&s, 3);
    collect(&s, now, OVERDUE, out, &repeated);
    assert_int_equal(cts_announcer_next(&s.announcer), now + OVERDUE);
}

/* Whoever is gone gets as many in haste as fit the patient waits; then the intervals double. */
static void test_haste_ends(void **state)
{
    (void)state;
    struct sides s;
    struct control_cts out[ROOM];
    uint32_t repeated;
    setup(&s, 0);
    s.announcer.haste = 1;
    announce(&s, 1);
    collect(&s, 0, OVERDUE, out, &repeated);
    lh_time expiry = 0;
    for (uint32_t turn = 0; turn < CTS_PATIENT_WAITS * CTS_HASTE; turn++) {
        expiry += OVERDUE / CTS_HASTE;
        assert_int_equal(cts_announcer_next(&s.announcer), expiry);
        assert_int_equal(collect(&s, expiry, OVERDUE, out, &repeated), 1);
    }
    assert_int_equal(expiry, CTS_PATIENT_WAITS * OVERDUE);
    for (uint32_t doublings = 0; doublings < 4; doublings++) {
        expiry += OVERDUE << doublings;
        assert_int_equal(cts_announcer_next(&s.announcer), expiry);
        assert_int_equal(collect(&s, expiry, OVERDUE, out, &repeated), 1);
    }
}

/* A fresh one does not put off the repeat of an older one, and goes first. */
static void test_fresh_beside_overdue(void **state)
{
    (void)state;
    struct sides s;
    struct control_cts out[ROOM];
    uint32_t repeated;
    setup(&s, 0);
    announce(&s, 1);
    collect(&s, 0, OVERDUE, out, &repeated);
    announce(&s, 2);
    assert_int_equal(collect(&s, OVERDUE - 1, OVERDUE, out, &repeated), 1);
    assert_int_equal(out[0].slot, 2);
    assert_int_equal(repeated, 0);
    assert_int_equal(cts_announcer_next(&s.announcer), OVERDUE);
    announce(&s, 3);
    assert_int_equal(collect(&s, OVERDUE, OVERDUE, out, &repeated), 1);
    assert_int_equal(out[0].slot, 3);
    assert_int_equal(collect(&s, OVERDUE, OVERDUE, out, &repeated), 3);
    assert_int_equal(repeated, 3);
}

/* In a stream each acknowledgement is news of one; the first that is missing among them is repeated an
 * overdue time from when it was sent, however recent that news is. */
static void test_repeat_in_a_stream(void **state)
{
    (void)state;
    struct sides s;
    struct control_cts out[ROOM];
    uint32_t repeated;
    setup(&s, 0);
    for (uint16_t slot = 0; slot < 4; slot++) {
        announce(&s, slot);
        assert_int_equal(collect(&s, slot * LH_NS_PER_MS, OVERDUE, out, &repeated), 1);
    }
    lh_time first = OVERDUE - 5 * LH_NS_PER_MS, missed = 2 * LH_NS_PER_MS + OVERDUE;
    assert_true(cts_on_ack(&s.announcer, 1, first, OVERDUE));
    assert_int_equal(cts_announcer_next(&s.announcer), LH_NS_PER_MS + OVERDUE);
    assert_true(cts_on_ack(&s.announcer, 2, first + LH_NS_PER_MS, OVERDUE));
    assert_int_equal(cts_announcer_next(&s.announcer), missed);
    assert_int_equal(collect(&s, missed - 1, OVERDUE, out, &repeated), 0);
    assert_int_equal(collect(&s, missed, OVERDUE, out, &repeated), 2);
    assert_int_equal(out[0].slot, 2);
    /* News of it that comes late: the other one was repeated just now. */
    assert_true(cts_on_ack(&s.announcer, 3, missed + 1, OVERDUE));
    assert_true(cts_announcer_next(&s.announcer) > missed + 1);
}

static void test_repeat_without_round_trip(void **state)
{
    (void)state;
    struct sides s;
    struct control_cts out[ROOM];
    uint32_t repeated;
    setup(&s, 0);
    announce(&s, 1);
    collect(&s, 0, 0, out, &repeated);
    assert_int_equal(cts_announcer_next(&s.announcer), LH_NS_PER_MS);
    assert_int_equal(collect(&s, LH_NS_PER_MS - 1, 0, out, &repeated), 0);
    assert_int_equal(collect(&s, LH_NS_PER_MS, 0, out, &repeated), 1);
    assert_int_equal(cts_announcer_next(&s.announcer), 3 * LH_NS_PER_MS);
}

/* A peer can make up any round trip: the timer stays in the future. */
/* Until a round trip is known, repeats are close. How often they were made says nothing of what to wait when
 * it is: the waits go on from what was waited. */
static void test_round_trip_known_after_repeats(void **state)
{
    (void)state;
    struct sides s;
    struct control_cts out[ROOM];
    uint32_t repeated;
    setup(&s, 0);
    announce(&s, 1);
    assert_int_equal(collect(&s, 0, 0, out, &repeated), 1);
    lh_time expiry = 0;
    for (uint32_t turn = 0; turn < 4; turn++) {
        expiry += CTS_FIRST_REPEAT_NS << turn;
        assert_int_equal(collect(&s, expiry, 0, out, &repeated), 1);
    }
    expiry += CTS_FIRST_REPEAT_NS << 4;
    for (uint32_t turn = 0; turn < 12; turn++) {
        assert_int_equal(cts_announcer_next(&s.announcer), expiry);
        assert_int_equal(collect(&s, expiry, OVERDUE, out, &repeated), 1);
        expiry += wait_of(turn);
    }
}

static void test_made_up_round_trip(void **state)
{
    (void)state;
    struct sides s;
    struct control_cts out[ROOM];
    uint32_t repeated;
    setup(&s, 0);
    announce(&s, 1);
    lh_time now = 1000;
    collect(&s, now, LH_TIME_NEVER, out, &repeated);
    for (uint32_t turn = 0; turn < 8; turn++) {
        lh_time at = cts_announcer_next(&s.announcer);
        assert_true(at > now && at != LH_TIME_NEVER);
        now = at;
        assert_int_equal(collect(&s, now, LH_TIME_NEVER, out, &repeated), 1);
        assert_int_equal(collect(&s, now, LH_TIME_NEVER, out, &repeated), 0);
    }
}

/* What the fabric did not take was not sent: it comes again, and costs no backoff. */
static void test_refused_by_the_fabric(void **state)
{
    (void)state;
    struct sides s;
    struct control_cts out[ROOM];
    uint32_t repeated;
    setup(&s, NEAR_END);
    for (uint16_t slot = 0; slot < 5; slot++)
        announce(&s, slot);
    assert_int_equal(collect(&s, 0, OVERDUE, out, &repeated), 5);
    cts_on_refused(&s.announcer, 5, repeated, 0);
    assert_int_equal(cts_announcer_next(&s.announcer), 0);
    assert_false(cts_on_ack(&s.announcer, NEAR_END + 1, 0, OVERDUE)); /* it was not announced yet */
    assert_int_equal(collect(&s, 7, OVERDUE, out, &repeated), 5);
    assert_int_equal(repeated, 0);
    assert_int_equal(out[0].slot, 0);
    assert_int_equal(cts_announcer_next(&s.announcer), 7 + OVERDUE);
    for (lh_time now = 7 + OVERDUE; now < 2 * OVERDUE; now += OVERDUE / 10) {
        assert_int_equal(collect(&s, now, OVERDUE, out, &repeated), 5);
        assert_int_equal(repeated, 5);
        cts_on_refused(&s.announcer, 5, repeated, now);
        assert_int_equal(cts_announcer_next(&s.announcer), now);
    }
    lh_time expiry = 2 * OVERDUE;
    for (uint32_t turn = 1; turn < 12; turn++) { /* whichever turn it is that was refused before */
        assert_int_equal(collect(&s, expiry, OVERDUE, out, &repeated), 5);
        cts_on_refused(&s.announcer, 5, repeated, expiry);
        assert_int_equal(collect(&s, expiry, OVERDUE, out, &repeated), 5);
        expiry += wait_of(turn);
        assert_int_equal(cts_announcer_next(&s.announcer), expiry);
    }
}

/* More than a message holds: fresh ones come in turns; of the overdue only the oldest. */
static void test_little_room(void **state)
{
    (void)state;
    struct sides s;
    struct control_cts out[ROOM];
    uint32_t repeated;
    setup(&s, 0);
    for (uint16_t slot = 0; slot < SIZE; slot++)
        announce(&s, slot);
    assert_int_equal(cts_collect(&s.announcer, 0, OVERDUE, out, 3, &repeated), 3);
    assert_int_equal(cts_announcer_next(&s.announcer), 0);
    assert_int_equal(cts_collect(&s.announcer, 0, OVERDUE, out, 3, &repeated), 3);
    assert_int_equal(out[0].slot, 3);
    assert_int_equal(cts_collect(&s.announcer, 0, OVERDUE, out, 3, &repeated), 2);
    assert_int_equal(cts_collect(&s.announcer, 0, OVERDUE, out, 3, &repeated), 0);
    assert_int_equal(cts_collect(&s.announcer, OVERDUE, OVERDUE, out, 3, &repeated), 3);
    assert_int_equal(repeated, 3);
    assert_int_equal(out[0].slot, 0);
    assert_int_equal(cts_collect(&s.announcer, OVERDUE, OVERDUE, out, 3, &repeated), 0);
}

/* ---- hearing ---- */

static void receive(struct sides *s, uint32_t sequence, uint16_t slot)
{
    struct control_cts entry = {.sequence = sequence, .slot = slot};
    cts_queue_add(&s->queue, &entry);
}

static void test_received_in_any_order_used_in_order(void **state)
{
    (void)state;
    struct sides s;
    setup(&s, NEAR_END);
    assert_null(cts_queue_peek(&s.queue));
    receive(&s, NEAR_END + 2, 12);
    receive(&s, NEAR_END + 1, 11);
    assert_null(cts_queue_peek(&s.queue));
    assert_int_equal(s.queue.received, NEAR_END);
    receive(&s, NEAR_END, 10);
    assert_int_equal(s.queue.received, NEAR_END + 3);
    receive(&s, NEAR_END, 77); /* again, with another content */
    receive(&s, NEAR_END + 4, 14);
    for (uint16_t slot = 10; slot < 13; slot++) {
        assert_int_equal(cts_queue_peek(&s.queue)->slot, slot);
        cts_queue_pop(&s.queue);
    }
    assert_null(cts_queue_peek(&s.queue));
    receive(&s, NEAR_END, 78); /* long used */
    receive(&s, NEAR_END + 2, 78);
    assert_null(cts_queue_peek(&s.queue));
    assert_int_equal(s.queue.received, NEAR_END + 3);
    receive(&s, NEAR_END + 3, 13);
    assert_int_equal(s.queue.received, NEAR_END + 5);
    cts_queue_pop(&s.queue);
    assert_int_equal(cts_queue_peek(&s.queue)->slot, 14);
}

static void test_outside_the_window(void **state)
{
    (void)state;
    struct sides s;
    setup(&s, 100);
    const uint32_t outside[] = {99, 0, 100 + SIZE, 100 + 0x80000000u, 100 + 2 * SIZE, UINT32_MAX};
    for (uint32_t i = 0; i < 6; i++)
        receive(&s, outside[i], 1);
    assert_int_equal(s.present[0], 0);
    assert_int_equal(s.queue.received, 100);
    for (uint32_t i = 0; i < SIZE; i++)
        receive(&s, 100 + i, (uint16_t)i);
    assert_int_equal(s.queue.received, 100 + SIZE); /* full */
    receive(&s, 100 + SIZE, 50);
    assert_int_equal(s.queue.received, 100 + SIZE);
    cts_queue_pop(&s.queue);
    receive(&s, 100 + SIZE, 50);
    assert_int_equal(s.queue.received, 100 + SIZE + 1);
    for (uint32_t i = 1; i < SIZE; i++)
        cts_queue_pop(&s.queue);
    assert_int_equal(cts_queue_peek(&s.queue)->slot, 50);
}

/* Both halves over a line that loses, doubles and reorders: everything announced is used once, in order. */
static void test_over_a_bad_line(void **state)
{
    (void)state;
    struct lh_prng prng;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct sides s;
        struct control_cts line[64];
        uint32_t on_line = 0, used = 0, posted = 0;
        setup(&s, NEAR_END - 20);
        lh_prng_seed(&prng, seed);
        for (lh_time now = 0; used < 200; now += LH_NS_PER_MS) {
            struct control_cts out[ROOM];
            uint32_t repeated, count;
            assert_true(now < 4000 * LH_NS_PER_S);
            if (posted < 200 && announce(&s, (uint16_t)posted))
                posted++;
            while ((count = collect(&s, now, OVERDUE, out, &repeated)) > 0)
                for (uint32_t i = 0; i < count; i++)
                    for (uint64_t copies = lh_prng_below(&prng, 3); copies > 0 && on_line < 64; copies--)
                        line[on_line++] = out[i];
            while (on_line > 0 && lh_prng_chance(&prng, 0.7)) {
                uint32_t pick = (uint32_t)lh_prng_below(&prng, on_line);
                cts_queue_add(&s.queue, &line[pick]);
                line[pick] = line[--on_line];
            }
            if (lh_prng_chance(&prng, 0.5))
                cts_on_ack(&s.announcer, s.queue.received - (uint32_t)lh_prng_below(&prng, 3), now,
                           OVERDUE);
            if (cts_queue_peek(&s.queue) && lh_prng_chance(&prng, 0.5)) {
                assert_int_equal(cts_queue_peek(&s.queue)->slot, used);
                cts_queue_pop(&s.queue);
                used++;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_window_fills_and_moves),
        cmocka_unit_test(test_invalid_ack_is_ignored),
        cmocka_unit_test(test_repeat_at_expiry),
        cmocka_unit_test(test_haste_behind_a_loss),
        cmocka_unit_test(test_haste_ends),
        cmocka_unit_test(test_fresh_beside_overdue),
        cmocka_unit_test(test_repeat_in_a_stream),
        cmocka_unit_test(test_repeat_without_round_trip),
        cmocka_unit_test(test_round_trip_known_after_repeats),
        cmocka_unit_test(test_made_up_round_trip),
        cmocka_unit_test(test_refused_by_the_fabric),
        cmocka_unit_test(test_little_room),
        cmocka_unit_test(test_received_in_any_order_used_in_order),
        cmocka_unit_test(test_outside_the_window),
        cmocka_unit_test(test_over_a_bad_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
