/*
 * test_flow_machines_cbfc.c - credits: what may be sent, the 12 bits of the message and how far they
 * reach, and a link
 * with both ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/flowcontrol.h>

#include "base/prng.h"

/* ---- test cbfc ------------------------------------------------------------------------------------- */

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

static int run_cbfc(void)
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

/* ---- test pause frame ------------------------------------------------------------------------------ */

/* The frame of 802.1Qbb, byte by byte. */

/* Priority 0 for 7813 quanta (10 us at 400 Gbit/s), priority 3 for ever. The check sequence is by zlib's
 * crc32(). */
static const uint8_t vector[LH_PFC_FRAME_BYTES] = {
    0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 0x02, 0x00, 0xde, 0xad, 0xbe, 0xef, 0x88, 0x08, 0x01, 0x01,
    0x00, 0x09, 0x1e, 0x85, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x23, 0x6c, 0xf0, 0x82};

static const struct lh_pfc_frame meant = {
    .source = {0x02, 0x00, 0xde, 0xad, 0xbe, 0xef},
    .enabled = 1u << 0 | 1u << 3,
    .quanta = {7813, 0, 0, 65535},
};

static void bytes_are_those_of_the_standard(void **state)
{
    (void)state;
    uint8_t out[LH_PFC_FRAME_BYTES];
    lh_pfc_frame_encode(&meant, out);
    assert_memory_equal(out, vector, sizeof vector);
    /* The time of a priority that is not enabled says nothing. */
    struct lh_pfc_frame more = meant;
    more.quanta[5] = 77;
    lh_pfc_frame_encode(&more, out);
    assert_memory_equal(out, vector, sizeof vector);
}

static void decoding_gives_back_what_was_encoded(void **state)
{
    (void)state;
    struct lh_pfc_frame frame;
    assert_int_equal(lh_pfc_frame_decode(vector, sizeof vector, &frame), 0);
    assert_memory_equal(frame.source, meant.source, sizeof frame.source);
    assert_int_equal(frame.enabled, meant.enabled);
    for (unsigned p = 0; p < LH_PFC_PRIORITIES; p++)
        assert_int_equal(frame.quanta[p], meant.quanta[p]);
}

/* Each bit of the frame counts: the check sequence sees to it, or a field does before. */
static void a_flipped_bit_is_refused(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < 8 * sizeof vector; bit++) {
        uint8_t bad[sizeof vector];
        struct lh_pfc_frame frame = {.enabled = 0xAA};
        memcpy(bad, vector, sizeof bad);
        bad[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(lh_pfc_frame_decode(bad, sizeof bad, &frame), -LH_EPROTOCOL);
        assert_int_equal(frame.enabled, 0xAA);
    }
}

static void other_lengths_are_refused(void **state)
{
    (void)state;
    struct lh_pfc_frame frame;
    uint8_t longer[LH_PFC_FRAME_BYTES + 1] = {0};
    memcpy(longer, vector, sizeof vector);
    for (size_t bytes = 0; bytes < sizeof vector; bytes++)
        assert_int_equal(lh_pfc_frame_decode(vector, bytes, &frame), -LH_EPROTOCOL);
    assert_int_equal(lh_pfc_frame_decode(longer, sizeof longer, &frame), -LH_EPROTOCOL);
    assert_non_null(strstr(lh_last_error(), "65 bytes"));
}

/* Whatever its length, no moment of it is uncovered, and it ends when it should. */
static void long_pauses_have_parts(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {0, 1, 65535, 65536, 98302, 98303, 131070, 500000, 16777216};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        uint32_t left = lengths[i];
        uint32_t now = 0;
        uint32_t until = 0;
        uint32_t after = 0;
        do {
            uint32_t part = lh_pfc_part(left, &after);
            assert_true(part <= LH_PFC_QUANTA_MAX && now <= until);
            assert_true(after == 0 || after <= part * 3 / 4); /* a late one is there in time */
            until = now + part;
            now += after;
            left -= after;
        } while (after != 0);
        assert_int_equal(until, lengths[i]);
    }
}

static void quanta_are_rounded_up(void **state)
{
    (void)state;
    assert_int_equal(lh_pfc_quanta(0), 0);
    assert_int_equal(lh_pfc_quanta(1), 1);
    assert_int_equal(lh_pfc_quanta(64), 1);
    assert_int_equal(lh_pfc_quanta(65), 2);
    assert_int_equal(lh_pfc_quanta(500000), 7813); /* 10 us at 400 Gbit/s */
    assert_int_equal(lh_pfc_quanta(65535 * 64), 65535);
    assert_int_equal(lh_pfc_quanta(65535 * 64 + 1), 65535);
    assert_int_equal(lh_pfc_quanta(UINT64_MAX), 65535);
}

static int run_pause_frame(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_those_of_the_standard),
        cmocka_unit_test(decoding_gives_back_what_was_encoded),
        cmocka_unit_test(a_flipped_bit_is_refused),
        cmocka_unit_test(other_lengths_are_refused),
        cmocka_unit_test(quanta_are_rounded_up),
        cmocka_unit_test(long_pauses_have_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test pfc -------------------------------------------------------------------------------------- */

/*
 * When an ingress port pauses and resumes, by a fixed threshold and by a share of what is
 * free.
 */

static void a_fixed_threshold(void **state)
{
    (void)state;
    const struct lh_pfc_thresholds at = {.xoff_bytes = 1000, .xon_bytes = 600};
    uint8_t stopped = 0;
    assert_int_equal(lh_pfc_update(&at, 1000, 0, 3, &stopped), LH_FLOW_NONE);
    assert_int_equal(lh_pfc_update(&at, 1001, 0, 3, &stopped), LH_FLOW_PAUSE);
    assert_int_equal(stopped, 1 << 3);
    assert_int_equal(lh_pfc_update(&at, 5000, 0, 3, &stopped), LH_FLOW_NONE);
    assert_int_equal(lh_pfc_update(&at, 601, 0, 3, &stopped), LH_FLOW_NONE);
    assert_int_equal(lh_pfc_update(&at, 1001, 0, 4, &stopped), LH_FLOW_PAUSE); /* of its own */
    assert_int_equal(lh_pfc_update(&at, 600, 0, 3, &stopped), LH_FLOW_RESUME);
    assert_int_equal(stopped, 1 << 4);
    assert_int_equal(lh_pfc_update(&at, 600, 0, 3, &stopped), LH_FLOW_NONE);
}

static void without_hysteresis_each_crossing_tells(void **state)
{
    (void)state;
    const struct lh_pfc_thresholds at = {.xoff_bytes = 1000, .xon_bytes = 1000};
    uint8_t stopped = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lh_pfc_update(&at, 1001, 0, 0, &stopped), LH_FLOW_PAUSE);
        assert_int_equal(lh_pfc_update(&at, 1000, 0, 0, &stopped), LH_FLOW_RESUME);
    }
}

static void a_share_of_what_is_free(void **state)
{
    (void)state;
    const struct lh_pfc_thresholds at = {.xoff_bytes = 1000, .xon_bytes = 800, .alpha = 0.25};
    uint8_t stopped = 0;
    assert_int_equal(lh_pfc_threshold(&at, 0), 1000);
    assert_int_equal(lh_pfc_threshold(&at, 4000), 1000);
    assert_int_equal(lh_pfc_threshold(&at, 40000), 10000);
    assert_int_equal(lh_pfc_update(&at, 9000, 40000, 0, &stopped), LH_FLOW_NONE);
    /* Others took the rest: what it holds is too much now. */
    assert_int_equal(lh_pfc_update(&at, 9000, 20000, 0, &stopped), LH_FLOW_PAUSE);
    assert_int_equal(lh_pfc_update(&at, 4801, 20000, 0, &stopped), LH_FLOW_NONE);
    assert_int_equal(lh_pfc_update(&at, 4800, 20000, 0, &stopped), LH_FLOW_RESUME);
    assert_true(lh_pfc_threshold(&(struct lh_pfc_thresholds){.alpha = 65536}, UINT64_MAX) > (uint64_t)1
                                                                                                << 62);
}

static void thresholds_that_cannot_work_are_refused(void **state)
{
    (void)state;
    struct lh_pfc_thresholds at = {.xoff_bytes = 1000, .xon_bytes = 1000, .alpha = 4};
    assert_int_equal(lh_pfc_check(&at), 0);
    at.xon_bytes = 1001;
    assert_int_equal(lh_pfc_check(&at), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "1001"));
    at.xon_bytes = 0;
    static const double bad[] = {-1, 65537, (double)NAN};
    for (size_t i = 0; i < 3; i++) {
        at.alpha = bad[i];
        assert_int_equal(lh_pfc_check(&at), -LH_ERANGE);
    }
}

static int run_pfc(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fixed_threshold),
        cmocka_unit_test(without_hysteresis_each_crossing_tells),
        cmocka_unit_test(a_share_of_what_is_free),
        cmocka_unit_test(thresholds_that_cannot_work_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test refresh ---------------------------------------------------------------------------------- */

/* What is said anew: when, and how often it may be. */

#define GBIT UINT64_C(1000000000)

static void nothing_is_due_before_it_was_said(void **state)
{
    (void)state;
    struct lh_flow_refresh refresh;
    lh_flow_refresh_init(&refresh, 100);
    assert_false(lh_flow_refresh_on_expired(&refresh, 0));
    assert_false(lh_flow_refresh_on_expired(&refresh, LH_TIME_NEVER - 1));
    lh_flow_refresh_on_said(&refresh, 1000);
    lh_flow_refresh_end(&refresh);
    assert_false(lh_flow_refresh_on_expired(&refresh, 5000));
}

static void it_is_said_once_in_a_period(void **state)
{
    (void)state;
    struct lh_flow_refresh refresh;
    lh_flow_refresh_init(&refresh, 100);
    lh_flow_refresh_on_said(&refresh, 1000);
    assert_false(lh_flow_refresh_on_expired(&refresh, 1099));
    assert_true(lh_flow_refresh_on_expired(&refresh, 1100));
    assert_false(lh_flow_refresh_on_expired(&refresh, 1199));
    assert_int_equal(refresh.due_ns, 1200);
    assert_true(lh_flow_refresh_on_expired(&refresh, 1250)); /* late, and the beat stays */
    assert_int_equal(refresh.due_ns, 1300);
    assert_true(lh_flow_refresh_on_expired(&refresh, 1750));
    assert_int_equal(refresh.due_ns, 1800);
}

/* 65,535 quanta of 64 bytes at 400 Gbit/s are 83.88 us, a packet and a pause 31 ns. */
static void the_period_is_within_the_quanta(void **state)
{
    (void)state;
    assert_int_equal(lh_pfc_refresh_max(400 * GBIT, 1500), 83853);
    assert_int_equal(lh_pfc_refresh_check(83853, 400 * GBIT, 1500), 0);
    assert_int_equal(lh_pfc_refresh_check(83854, 400 * GBIT, 1500), -LH_ERANGE);
    assert_non_null(strstr(lh_last_error(), "shorten"));
    assert_int_equal(lh_pfc_refresh_max(100 * GBIT, 1500), 335414);
}

static void pauses_leave_room_for_the_rest(void **state)
{
    (void)state;
    lh_time minimum = lh_pfc_refresh_min(100 * GBIT); /* ten frames of 5.12 ns */
    assert_int_equal(minimum, 52);
    assert_int_equal(lh_pfc_refresh_check(minimum, 100 * GBIT, 1500), 0);
    assert_int_equal(lh_pfc_refresh_check(minimum - 1, 100 * GBIT, 1500), -LH_ERANGE);
    assert_non_null(strstr(lh_last_error(), "lengthen"));
}

static void no_link_has_that(void **state)
{
    (void)state;
    assert_int_equal(lh_pfc_refresh_check(1000, 0, 1500), -LH_ERANGE);
    assert_int_equal(lh_pfc_refresh_check(1000, UINT64_MAX, 1500), -LH_ERANGE);
    assert_int_equal(lh_pfc_refresh_check(1000, 100 * GBIT, 65536), -LH_ERANGE);
    assert_int_equal(lh_pfc_refresh_check(UINT64_MAX, 1000000, 0), -LH_ERANGE);
    assert_int_equal(lh_pfc_refresh_check(0, 100 * GBIT, 0), -LH_ERANGE);
}

static int run_refresh(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_due_before_it_was_said),
        cmocka_unit_test(it_is_said_once_in_a_period),
        cmocka_unit_test(the_period_is_within_the_quanta),
        cmocka_unit_test(pauses_leave_room_for_the_rest),
        cmocka_unit_test(no_link_has_that),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test swing ------------------------------------------------------------------------------------ */

/*
 * What a relay tells over the long link; and that one which forwards holds at most what the
 * link carries in a round trip.
 */

static void forwarding_passes_on_what_changes(void **state)
{
    (void)state;
    struct lh_swing swing = {.forward = true, .thresholds = {1000, 1000, 0}};
    assert_int_equal(lh_swing_on_signal(&swing, 3, false), LH_FLOW_NONE);
    assert_int_equal(lh_swing_on_signal(&swing, 3, true), LH_FLOW_PAUSE);
    assert_int_equal(lh_swing_on_signal(&swing, 3, true), LH_FLOW_NONE);
    assert_int_equal(lh_swing_on_signal(&swing, 4, true), LH_FLOW_PAUSE);
    assert_int_equal(lh_swing_on_queue(&swing, 3, 5000), LH_FLOW_NONE);
    assert_int_equal(lh_swing_on_signal(&swing, 3, false), LH_FLOW_RESUME);
    assert_int_equal(swing.stopped, 1 << 4);
}

static void a_threshold_of_its_own(void **state)
{
    (void)state;
    struct lh_swing swing = {.thresholds = {1000, 1000, 0}};
    assert_int_equal(lh_swing_on_signal(&swing, 3, true), LH_FLOW_NONE);
    assert_int_equal(lh_swing_on_queue(&swing, 3, 1000), LH_FLOW_NONE);
    assert_int_equal(lh_swing_on_queue(&swing, 3, 1001), LH_FLOW_PAUSE);
    assert_int_equal(lh_swing_on_queue(&swing, 3, 1000), LH_FLOW_RESUME);
}

#define TRIP 64u /* steps of a round trip; a step carries one unit */

/* An upstream that always has something to send repeats, a round trip later, what the switch let the
 * relay do. Returns the most that the relay held; *dry counts steps in which it had nothing to give. */
static uint64_t relay_max(struct lh_prng *prng, unsigned mean_steps, unsigned *dry)
{
    struct lh_swing swing = {.forward = true};
    bool open[TRIP];
    uint64_t held = 0;
    uint64_t maximum = 0;
    bool paused = false;
    for (unsigned i = 0; i < TRIP; i++)
        open[i] = true;
    for (unsigned step = 0; step < 20000; step++) {
        if (lh_prng_below(prng, mean_steps) == 0) {
            paused = !paused;
            enum lh_flow_signal announced = lh_swing_on_signal(&swing, 0, paused);
            assert_int_equal(announced, paused ? LH_FLOW_PAUSE : LH_FLOW_RESUME);
        }
        held += open[step % TRIP] ? 1 : 0;
        open[step % TRIP] = swing.stopped == 0;
        if (held > maximum)
            maximum = held;
        *dry += !paused && held == 0;
        held -= !paused && held > 0 ? 1 : 0;
    }
    return maximum;
}

static void forwarding_needs_one_round_trip_and_never_runs_dry(void **state)
{
    (void)state;
    struct lh_prng prng;
    unsigned dry = 0;
    uint64_t maximum = 0;
    lh_prng_seed(&prng, 7);
    for (unsigned mean = 1; mean < 400; mean += 7) {
        uint64_t held = relay_max(&prng, mean, &dry);
        assert_true(held <= TRIP);
        maximum = held > maximum ? held : maximum;
    }
    assert_int_equal(dry, 0);
    assert_int_equal(maximum, TRIP); /* and no less: a pause of a round trip fills it */
}

static int run_swing(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forwarding_passes_on_what_changes),
        cmocka_unit_test(a_threshold_of_its_own),
        cmocka_unit_test(forwarding_needs_one_round_trip_and_never_runs_dry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_cbfc() + run_pause_frame() + run_pfc() + run_refresh() + run_swing();
}
