/*
 * test_cbfc.c - credits: what may be sent, the 12 bits of the message and how far they reach, and a link
 * with both ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/flowcontrol.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

static void a_packet_takes_whole_blocks(void **state)
{
    (void)state;
    assert_int_equal(lh_cbfc_blocks(1), 1);
    assert_int_equal(lh_cbfc_blocks(64), 1);
    assert_int_equal(lh_cbfc_blocks(65), 2);
    assert_int_equal(lh_cbfc_blocks(1500), 24);
}

static void a_sender_stops_at_its_limit(void **state)
{
    (void)state;
    struct lh_cbfc_sender sender;
    lh_cbfc_sender_init(&sender, true, 25);
    assert_true(lh_cbfc_may_send(&sender, 1600));
    assert_false(lh_cbfc_may_send(&sender, 1601));
    lh_cbfc_on_sent(&sender, 1500);
    assert_true(lh_cbfc_may_send(&sender, 64));
    assert_false(lh_cbfc_may_send(&sender, 65));
    lh_cbfc_on_limit(&sender, 30);
    assert_true(lh_cbfc_may_send(&sender, 384));
    assert_false(lh_cbfc_may_send(&sender, 385));
    lh_cbfc_on_limit(&sender, 27); /* came late */
    assert_true(lh_cbfc_may_send(&sender, 384));
}

/* Twelve bits count modulo 4096, and a limit is at most 2048 ahead. */
static void twelve_bits_wrap(void **state)
{
    (void)state;
    struct lh_cbfc_sender sender;
    struct lh_cbfc_receiver receiver;
    lh_cbfc_receiver_init(&receiver, false, 1 << 20, 64);
    lh_cbfc_sender_init(&sender, false, lh_cbfc_limit(&receiver));
    assert_true(lh_cbfc_may_send(&sender, 2048 * 64));
    assert_false(lh_cbfc_may_send(&sender, 2048 * 64 + 1));
    for (unsigned i = 0; i < 20000; i++) {
        assert_true(lh_cbfc_may_send(&sender, 1500));
        lh_cbfc_on_sent(&sender, 1500);
        assert_true(lh_cbfc_on_packet(&receiver, 1500));
        assert_true(lh_cbfc_on_freed(&receiver, 1500));
        lh_cbfc_on_limit(&sender, lh_cbfc_limit(&receiver));
    }
    assert_true(sender.sent_blocks < 4096 && sender.sent_blocks == receiver.received_blocks);
    assert_int_equal(sender.sent_blocks, 20000 * 24 % 4096);
}

static void a_limit_is_told_when_it_has_grown(void **state)
{
    (void)state;
    struct lh_cbfc_receiver receiver;
    lh_cbfc_receiver_init(&receiver, true, 10000, 1500);
    assert_int_equal(lh_cbfc_limit(&receiver), 156);
    for (unsigned i = 0; i < 6; i++)
        assert_true(lh_cbfc_on_packet(&receiver, 1000));
    assert_false(lh_cbfc_on_freed(&receiver, 1000)); /* 16 of 24 blocks */
    assert_true(lh_cbfc_on_freed(&receiver, 1000));
    assert_int_equal(lh_cbfc_limit(&receiver), 156 + 32);
    assert_false(lh_cbfc_on_freed(&receiver, 1000));
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct lh_cbfc_receiver receiver;
    lh_cbfc_receiver_init(&receiver, true, 3000, 64);
    assert_true(lh_cbfc_on_packet(&receiver, 1500));
    assert_false(lh_cbfc_on_packet(&receiver, 1500)); /* 46 blocks, of which 24 are taken */
    assert_true(lh_cbfc_on_packet(&receiver, 1400));
}

/* A packet is lost on the way: its blocks would be missing for ever. */
static void the_total_mends_what_was_lost(void **state)
{
    (void)state;
    struct lh_cbfc_sender sender;
    struct lh_cbfc_receiver receiver;
    lh_cbfc_receiver_init(&receiver, false, 6400, 64);
    lh_cbfc_sender_init(&sender, false, lh_cbfc_limit(&receiver));
    lh_cbfc_on_sent(&sender, 6400);
    lh_cbfc_on_limit(&sender, lh_cbfc_limit(&receiver));
    assert_false(lh_cbfc_may_send(&sender, 1));
    lh_cbfc_on_total(&receiver, sender.sent_blocks);
    lh_cbfc_on_limit(&sender, lh_cbfc_limit(&receiver));
    assert_true(lh_cbfc_may_send(&sender, 6400));
}

/* ---- a link with both ends, in steps of a packet's time --------------------------------------------- */

#define DELAY_MAX 600u
#define PACKET    1024u

struct wire {
    uint64_t limits[DELAY_MAX]; /* on their way back, UINT64_MAX: none */
    bool packets[DELAY_MAX];
};

/* An upstream with endless backlog, a downstream that gives away a packet a step with that chance in 256.
 * Returns how many it gave; asserts that nothing is lost. */
static unsigned run_link(bool wide, unsigned delay, uint64_t buffer, unsigned chance, unsigned steps)
{
    static struct wire wire;
    struct lh_cbfc_sender sender;
    struct lh_cbfc_receiver receiver;
    struct lh_prng prng;
    unsigned given = 0;
    unsigned queue = 0;
    memset(&wire, 0, sizeof wire);
    memset(wire.limits, 0xFF, sizeof wire.limits);
    lh_prng_seed(&prng, delay);
    lh_cbfc_receiver_init(&receiver, wide, buffer, PACKET);
    lh_cbfc_sender_init(&sender, wide, lh_cbfc_limit(&receiver));
    for (unsigned step = 0; step < steps; step++) {
        unsigned at = step % delay;
        if (wire.limits[at] != UINT64_MAX)
            lh_cbfc_on_limit(&sender, wire.limits[at]);
        if (wire.packets[at]) {
            assert_true(lh_cbfc_on_packet(&receiver, PACKET));
            queue++;
        }
        wire.limits[at] = UINT64_MAX;
        if (queue > 0 && lh_prng_below(&prng, 256) < chance) {
            queue--;
            given++;
            if (lh_cbfc_on_freed(&receiver, PACKET))
                wire.limits[at] = lh_cbfc_limit(&receiver);
        }
        wire.packets[at] = lh_cbfc_may_send(&sender, PACKET);
        if (wire.packets[at])
            lh_cbfc_on_sent(&sender, PACKET);
    }
    return given;
}

static void a_round_trip_of_buffer_keeps_the_link_full(void **state)
{
    (void)state;
    for (unsigned delay = 1; delay < 500; delay += 37) {
        assert_int_equal(run_link(true, delay, (2 * delay + 2) * PACKET, 256, 20000), 20000 - delay);
        assert_true(run_link(true, delay, delay * PACKET, 256, 20000) < 20000 - delay);
        run_link(true, delay, (2 * delay + 2) * PACKET, 100, 20000);
    }
}

/* 2048 blocks of 64 bytes are 128 packets of 1 KiB: a round trip of that. At 100 Gbit/s this is a
 * kilometre. */
static void twelve_bits_reach_so_far_and_no_further(void **state)
{
    (void)state;
    assert_int_equal(run_link(false, 63, 1 << 20, 256, 20000), 20000 - 63);
    unsigned far = run_link(false, 256, 1 << 20, 256, 20000);
    assert_true(far > 20000 / 4 - 300 && far < 20000 / 4 + 300); /* a quarter of the rate */
    assert_int_equal(run_link(true, 256, 1 << 20, 256, 20000), 20000 - 256);
    struct lh_flow_needs needs;
    const struct lh_flow_link link = {100000000000, 5000, 1000, 1, 1500};
    assert_int_equal(lh_flow_needs(&link, &needs), 0);
    assert_int_equal(needs.cbfc_reach_ns, 5242); /* 1.05 km at 5 us each */
}

/* A buffer larger than 12 bits can tell of: each arrival lets it tell of more, though nothing leaves. */
static void arrivals_let_twelve_bits_tell_of_more(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        struct lh_cbfc_receiver receiver;
        lh_cbfc_receiver_init(&receiver, wide != 0, 1 << 20, PACKET);
        uint64_t first = lh_cbfc_limit(&receiver);
        assert_int_equal(first, wide != 0 ? (1 << 20) / 64 : 2048);
        assert_false(lh_cbfc_is_due(&receiver));
        assert_true(lh_cbfc_on_packet(&receiver, PACKET));
        assert_int_equal(lh_cbfc_is_due(&receiver), wide == 0);
        assert_int_equal(lh_cbfc_limit(&receiver), wide != 0 ? first : 2048 + PACKET / 64);
        assert_false(lh_cbfc_is_due(&receiver));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_takes_whole_blocks),
        cmocka_unit_test(a_sender_stops_at_its_limit),
        cmocka_unit_test(twelve_bits_wrap),
        cmocka_unit_test(a_limit_is_told_when_it_has_grown),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(the_total_mends_what_was_lost),
        cmocka_unit_test(a_round_trip_of_buffer_keeps_the_link_full),
        cmocka_unit_test(twelve_bits_reach_so_far_and_no_further),
        cmocka_unit_test(arrivals_let_twelve_bits_tell_of_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
