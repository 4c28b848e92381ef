/*
 * test_pause_frame.c - the frame of 802.1Qbb, byte by byte.
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

int main(void)
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
