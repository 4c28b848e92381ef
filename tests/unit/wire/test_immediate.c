/*
 * test_immediate.c - the parts of the 32-bit immediate.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/immediate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void check_round_trip(struct immediate_split split)
{
    assert_int_equal(split.message_bits + split.offset_bits + split.fragment_bits, 32);
    uint32_t seed = 1;
    for (int i = 0; i < 10000; i++) {
        seed = seed * 1664525u + 1013904223u;
        struct immediate_fields fields = immediate_part(split, seed);
        assert_true(fields.message < 1u << split.message_bits);
        assert_true(fields.packet < 1u << split.offset_bits);
        assert_true(fields.fragment < 1u << split.fragment_bits);
        assert_int_equal(immediate_join(split, fields), seed);
    }
}

static void test_layout(void **state)
{
    (void)state;
    struct immediate_fields fields = {.message = 0x3FF, .packet = 1, .fragment = 0};
    assert_int_equal(immediate_join(IMMEDIATE_SPLIT_10_18_4, fields), 0xFFC00010u);
    fields = (struct immediate_fields){.message = 1, .packet = 0, .fragment = 3};
    assert_int_equal(immediate_join(IMMEDIATE_SPLIT_8_22_2, fields), 0x01000003u);
}

static void test_round_trip(void **state)
{
    (void)state;
    check_round_trip(IMMEDIATE_SPLIT_10_18_4);
    check_round_trip(IMMEDIATE_SPLIT_8_22_2);
    check_round_trip((struct immediate_split){1, 30, 1});
    check_round_trip((struct immediate_split){15, 1, 16});
}

/* Any run of immediate_fragments() packets carries the user's immediate whole. */
static void check_fragments(struct immediate_split split, uint32_t expected_count)
{
    const uint32_t user = 0x89ABCDEFu;
    uint32_t count = immediate_fragments(split);
    assert_int_equal(count, expected_count);
    for (uint32_t first = 0; first < 40; first++) {
        uint32_t whole = 0;
        for (uint32_t packet = first; packet < first + count; packet++)
            whole |= immediate_fragment_of(split, user, packet) << packet % count * split.fragment_bits;
        assert_int_equal(whole, user);
    }
}

static void test_fragments_make_the_users_immediate(void **state)
{
    (void)state;
    check_fragments(IMMEDIATE_SPLIT_10_18_4, 8);
    check_fragments(IMMEDIATE_SPLIT_8_22_2, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_fragments_make_the_users_immediate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
