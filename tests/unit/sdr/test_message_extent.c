/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/message_extent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/prng.h"

#define MTU 256u

static bool full(struct message_extent *extent, uint32_t packet)
{
    return message_extent_full(extent, MTU, packet, 1) != 0;
}

static void test_bounds(void **state)
{
    (void)state;
    struct message_extent extent;
    message_extent_open(&extent, UINT32_MAX); /* the longest buffer */
    assert_true(full(&extent, (1u << 24) - 2));
    assert_false(full(&extent, (1u << 24) - 1));
    assert_false(message_extent_short(&extent, MTU, (1u << 24) - 3, 255));
    assert_true(message_extent_short(&extent, MTU, (1u << 24) - 1, 255));
    message_extent_open(&extent, 0);
    assert_false(full(&extent, 0));
    assert_false(message_extent_short(&extent, MTU, 0, 1));
    assert_true(message_extent_fix(&extent, MTU, 0));
}

static void test_says_where_it_ends(void **state)
{
    (void)state;
    struct message_extent extent;
    message_extent_open(&extent, 10 * MTU);
    assert_int_equal(message_extent_end(&extent), 10 * MTU);
    assert_true(full(&extent, 2));
    assert_int_equal(message_extent_end(&extent), 10 * MTU);
    assert_true(message_extent_short(&extent, MTU, 4, 3));
    assert_int_equal(message_extent_end(&extent), 4 * MTU + 3);
}

/* Of the packets of a word those before the end are taken. */
static void test_part_of_a_word(void **state)
{
    (void)state;
    struct message_extent extent;
    message_extent_open(&extent, 100 * MTU + 1);
    assert_int_equal(message_extent_full(&extent, MTU, 64, UINT64_MAX), ((uint64_t)1 << 36) - 1);
    assert_int_equal(message_extent_full(&extent, MTU, 64, (uint64_t)3 << 36), 0);
    assert_int_equal(message_extent_full(&extent, MTU, 128, UINT64_MAX), 0);
    assert_int_equal(message_extent_full(&extent, MTU, 0, UINT64_MAX), UINT64_MAX);
}

static void test_announced(void **state)
{
    (void)state;
    struct message_extent extent;
    message_extent_open(&extent, 100 * MTU);
    assert_true(full(&extent, 49));
    assert_false(message_extent_fix(&extent, MTU, 50 * MTU - 1));
    assert_false(message_extent_fix(&extent, MTU, 100 * MTU + 1));
    assert_true(message_extent_fix(&extent, MTU, 60 * MTU + 5));
    assert_false(full(&extent, 60));
    assert_false(message_extent_short(&extent, MTU, 59, 5));
    assert_false(message_extent_short(&extent, MTU, 60, 4));
    assert_true(message_extent_fix(&extent, MTU, 55 * MTU + 5)); /* nearer is possible while nothing came */
    assert_true(message_extent_short(&extent, MTU, 55, 5));
    assert_true(message_extent_short(&extent, MTU, 55, 5));
    assert_true(message_extent_fix(&extent, MTU, 55 * MTU + 5));
    assert_false(message_extent_fix(&extent, MTU, 55 * MTU));
}

/* Whatever comes in whatever order: what is taken is packets of one message. */
static void test_what_is_taken_is_one_message(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 5);
    for (uint32_t turn = 0; turn < 20000; turn++) {
        struct message_extent extent;
        uint32_t room = (uint32_t)lh_prng_below(&prng, 6 * MTU);
        message_extent_open(&extent, room);
        uint32_t top = 0;       /* one past the highest full packet */
        uint32_t end = 0;       /* of the short packet */
        uint32_t announced = 0; /* the last that was agreed to */
        bool fixed = false;
        for (uint32_t i = 0; i < 12; i++) {
            uint32_t packet = (uint32_t)lh_prng_below(&prng, 7);
            uint32_t bytes = 1 + (uint32_t)lh_prng_below(&prng, 3) * 127;
            uint64_t what = lh_prng_below(&prng, 8);
            if (what < 4) {
                top = full(&extent, packet) && packet >= top ? packet + 1 : top;
            } else if (what < 7) {
                bool taken = message_extent_short(&extent, MTU, packet, bytes);
                assert_true(!taken || end == 0 || end == packet * MTU + bytes);
                end = taken ? packet * MTU + bytes : end;
            } else if (message_extent_fix(&extent, MTU, (uint64_t)packet * MTU)) {
                announced = packet * MTU;
                fixed = true;
            }
            assert_true(end == 0 || top * MTU <= end);
            assert_true(!fixed || (top * MTU <= announced && (end == 0 || end == announced)));
            assert_true(top * MTU <= room && end <= room);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_says_where_it_ends),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_part_of_a_word),
        cmocka_unit_test(test_announced),
        cmocka_unit_test(test_what_is_taken_is_one_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
