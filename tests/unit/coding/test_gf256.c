/*
 * test_gf256.c - the tables against shift and add.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/gf256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/code_reference.h"

static void test_powers_and_logarithms(void **state)
{
    (void)state;
    uint8_t power = 1;
    for (unsigned i = 0; i < GF256_ORDER; i++) {
        assert_int_equal(gf256_power[i], power);
        assert_int_equal(gf256_power[i + GF256_ORDER], power);
        assert_int_equal(gf256_log[power], i);
        power = reference_multiply(power, 2);
    }
    assert_int_equal(power, 1);
    assert_int_equal(gf256_log[0], 0); /* erasure_code.c relies on it */
}

static void test_multiply_and_divide(void **state)
{
    (void)state;
    for (unsigned a = 0; a < 256; a++)
        for (unsigned b = 0; b < 256; b++) {
            uint8_t product = gf256_multiply((uint8_t)a, (uint8_t)b);
            assert_int_equal(product, reference_multiply((uint8_t)a, (uint8_t)b));
            if (b != 0)
                assert_int_equal(gf256_divide(product, (uint8_t)b), a);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_powers_and_logarithms),
        cmocka_unit_test(test_multiply_and_divide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
