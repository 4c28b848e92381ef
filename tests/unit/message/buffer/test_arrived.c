/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/buffer/arrived.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bitmap.h"
#include "base/prng.h"

static void test_nothing_and_all(void **state)
{
    (void)state;
    uint64_t bits[2] = {0}, missing;
    struct arrived arrived = {NULL, 64, 100 * 64 - 3};
    struct lh_range range;
    assert_int_equal(arrived_words(arrived.bytes, 64), 2);
    assert_int_equal(arrived_missing(&arrived, &missing), 1);
    assert_int_equal(missing, arrived.bytes);
    arrived.bits = bits;
    assert_int_equal(arrived_missing(&arrived, &missing), 1);
    assert_int_equal(missing, arrived.bytes);
    lh_bitmap_set_range(bits, 0, 100);
    assert_int_equal(arrived_missing(&arrived, &missing), 0);
    assert_false(arrived_next_missing(&arrived, 0, &range));
    lh_bitmap_clear(bits, 99); /* the short one */
    assert_true(arrived_next_missing(&arrived, 0, &range));
    assert_true(range.offset == 99 * 64 && range.bytes == 61);
    arrived.bytes = 0;
    assert_int_equal(arrived_missing(&arrived, &missing), 0);
}

/* Beside one packet after the other. */
static void test_any_bits(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 3);
    for (uint32_t turn = 0; turn < 300; turn++) {
        uint64_t bits[4], bytes = 1 + lh_prng_below(&prng, 256 * 64), sum = 0, missing, ranges = 0;
        for (size_t i = 0; i < 4; i++)
            bits[i] = lh_prng_next(&prng) | (turn % 3 ? lh_prng_next(&prng) : 0);
        const struct arrived arrived = {bits, 64, bytes};
        for (uint64_t p = 0; p * 64 < bytes; p++) {
            uint64_t left = bytes - p * 64;
            bool lost = !lh_bitmap_get(bits, p);
            sum += lost ? (left < 64 ? left : 64) : 0;
            ranges += lost && (p == 0 || lh_bitmap_get(bits, p - 1));
        }
        assert_int_equal(arrived_missing(&arrived, &missing), ranges);
        assert_int_equal(missing, sum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_and_all),
        cmocka_unit_test(test_any_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
