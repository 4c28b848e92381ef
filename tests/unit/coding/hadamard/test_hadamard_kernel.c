/*
 * test_hadamard_kernel.c - every F16 and BF16 number as F32 and back, rounding, and what is not finite.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/hadamard/hadamard_kernel.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/hadamard_reference.h"

static const enum lh_hadamard_type halves[] = {LH_HADAMARD_BF16, LH_HADAMARD_F16};

static void test_every_half(void **state)
{
    (void)state;
    for (unsigned t = 0; t < 2; t++)
        for (uint32_t bits = 0; bits < 65536; bits += 4) {
            uint16_t four[8], back[8]; /* as large as four F32 */
            for (unsigned i = 0; i < 4; i++)
                four[i] = (uint16_t)(bits + i);
            four_words words = load_four(four, 0, halves[t]);
            store_four(back, 0, words, halves[t]);
            for (unsigned i = 0; i < 4; i++) {
                const double wanted = tensor_get(four, i, halves[t]);
                const double value = (double)((four_floats)words)[i];
                assert_true(isfinite(wanted) ? value == wanted : !isfinite(value));
                assert_true(!isfinite(wanted) || back[i] == four[i]);
            }
        }
}

/* Halfway between two numbers, and around it. */
static void test_rounding(void **state)
{
    (void)state;
    for (unsigned t = 0; t < 2; t++)
        for (uint32_t bits = 1; bits < 0x7bff; bits += 3) {
            uint16_t pair[2] = {(uint16_t)bits, (uint16_t)(bits + 1)}, wanted[8], rounded[8];
            const double middle = (tensor_get(pair, 0, halves[t]) + tensor_get(pair, 1, halves[t])) / 2;
            const float near[] = {(float)middle, nextafterf((float)middle, 0),
                                  nextafterf((float)middle, INFINITY), -(float)middle};
            four_words words;
            memcpy(&words, near, sizeof words);
            store_four(rounded, 0, words, halves[t]);
            for (unsigned i = 0; i < 4; i++) {
                tensor_put(wanted, i, (double)near[i], halves[t]);
                assert_int_equal(rounded[i], wanted[i]);
            }
        }
}

static void test_non_finite(void **state)
{
    (void)state;
    static const enum lh_hadamard_type types[] = {LH_HADAMARD_F32, LH_HADAMARD_BF16, LH_HADAMARD_F16};
    static const double largest[] = {3.4e38, 3.3e38, 65504};
    for (unsigned t = 0; t < 3; t++) {
        enum { COUNT = 1500 };
        static uint32_t numbers[COUNT];
        for (unsigned i = 0; i < COUNT; i++)
            tensor_put(numbers, i, largest[t] * (i % 2 ? -1 : 1), types[t]);
        assert_int_equal(elements_first_non_finite(numbers, 3, COUNT - 3, types[t]), COUNT);
        for (unsigned at = 0; at < COUNT; at += 7) {
            double before = tensor_get(numbers, at, types[t]);
            tensor_put(numbers, at, (double)(at % 2 ? NAN : -INFINITY), types[t]);
            assert_int_equal(elements_first_non_finite(numbers, 0, COUNT, types[t]), at);
            assert_int_equal(elements_first_non_finite(numbers, at + 1, COUNT - at - 1, types[t]), COUNT);
            assert_int_equal(elements_zero_non_finite(numbers, 0, COUNT, types[t]), 1);
            assert_true(tensor_get(numbers, at, types[t]) == 0);
            tensor_put(numbers, at, before, types[t]);
        }
        for (unsigned at = 5; at < COUNT - 1; at++)
            tensor_put(numbers, at, (double)NAN, types[t]);
        assert_int_equal(elements_zero_non_finite(numbers, 3, COUNT - 3, types[t]), COUNT - 6);
        for (unsigned at = 0; at < COUNT; at++)
            assert_true((tensor_get(numbers, at, types[t]) == 0) == (at >= 5 && at < COUNT - 1));
    }
}

static void test_scale(void **state)
{
    (void)state;
    float numbers[] = {1, 2, -3, 4, 5, 6, 7};
    assert_true(elements_scale(numbers, 1, 5, LH_HADAMARD_F32, 0.5f));
    const float wanted[] = {1, 1, -1.5f, 2, 2.5f, 3, 7};
    assert_memory_equal(numbers, wanted, sizeof wanted);
    numbers[3] = 3e38f;
    assert_false(elements_scale(numbers, 0, 7, LH_HADAMARD_F32, 2));
    assert_true(numbers[3] == 0 && numbers[6] == 14);
}

/* Fours and what is left of them, from any element on; others stay. */
static void test_scale_any(void **state)
{
    static const enum lh_hadamard_type types[] = {LH_HADAMARD_F32, LH_HADAMARD_BF16, LH_HADAMARD_F16};
    enum { COUNT = 16 };
    (void)state;
    for (unsigned t = 0; t < 3; t++)
        for (unsigned from = 0; from < 4; from++)
            for (unsigned count = 0; count <= 9; count++) {
                uint32_t numbers[COUNT];
                for (unsigned at = 0; at < COUNT; at++)
                    tensor_put(numbers, at, at % 8 + 1, types[t]);
                assert_true(elements_scale(numbers, from, count, types[t], 1.5f));
                for (unsigned at = 0; at < COUNT; at++)
                    assert_true(tensor_get(numbers, at, types[t]) ==
                                (at % 8 + 1) * (at >= from && at < from + count ? 1.5 : 1));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_half), cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_non_finite), cmocka_unit_test(test_scale),
        cmocka_unit_test(test_scale_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
