/*
 * test_mds_matrix.c - encoding by definition; decoding times encoding is the identity.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/mds_matrix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "support/code_reference.h"

static void test_every_coefficient(void **state)
{
    (void)state;
    uint8_t row[PRODUCT_MATRIX_MAX];
    for (uint32_t i = 0; i < 254; i++) {
        uint32_t k = 254 - i;
        mds_encode_matrix(i, 1, k, row);
        for (uint32_t j = 0; j < k; j++)
            assert_int_equal(row[j], reference_coefficient(i, j));
    }
}

static void test_row_0_is_all_ones(void **state)
{
    (void)state;
    uint8_t row[PRODUCT_MATRIX_MAX];
    mds_encode_matrix(0, 1, 254, row);
    for (uint32_t j = 0; j < 254; j++)
        assert_int_equal(row[j], 1);
}

static void test_rows_and_columns_fit_together(void **state)
{
    (void)state;
    static uint8_t large[PRODUCT_MATRIX_MAX], small[PRODUCT_MATRIX_MAX];
    mds_encode_matrix(0, 100, 150, large);
    mds_encode_matrix(30, 7, 20, small);
    for (uint32_t r = 0; r < 7; r++)
        for (uint32_t j = 0; j < 20; j++)
            assert_int_equal(small[r * 20 + j], large[(30 + r) * 150 + j]);
}

/* Which of count things, ascending, drawn out of `of`. */
static void draw(struct lh_prng *prng, uint32_t count, uint32_t of, uint8_t *drawn)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < of; i++)
        if (lh_prng_below(prng, of - i) < count - found)
            drawn[found++] = (uint8_t)i;
    assert_int_equal(found, count);
}

/* Chunk z, as the sum of data: one row. */
static uint8_t share_of_data(uint32_t k, uint32_t count, const uint8_t *lost, const uint8_t *parity,
                             uint32_t z, uint32_t data)
{
    for (uint32_t n = 0; n < count; n++)
        if (lost[n] == z)
            return reference_coefficient(parity[n], data);
    assert_true(z < k);
    return z == data;
}

static void check_inverse(uint32_t k, uint32_t count, const uint8_t *lost, const uint8_t *parity)
{
    static uint8_t matrix[PRODUCT_MATRIX_MAX];
    mds_decode_matrix(k, count, lost, parity, matrix);
    for (uint32_t r = 0; r < count; r++)
        for (uint32_t data = 0; data < k; data++) {
            uint8_t sum = 0;
            for (uint32_t z = 0; z < k; z++)
                sum ^=
                    reference_multiply(matrix[r * k + z], share_of_data(k, count, lost, parity, z, data));
            assert_int_equal(sum, lost[r] == data);
        }
}

static void test_decoding_undoes_encoding(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 20);
    for (unsigned i = 0; i < 300; i++) {
        uint32_t k = 1 + (uint32_t)lh_prng_below(&prng, 24);
        uint32_t m = 1 + (uint32_t)lh_prng_below(&prng, 255 - k);
        uint32_t most = k < m ? k : m;
        uint32_t count = 1 + (uint32_t)lh_prng_below(&prng, most < 8 ? most : 8);
        uint8_t lost[8], parity[8];
        draw(&prng, count, k, lost);
        draw(&prng, count, m, parity);
        check_inverse(k, count, lost, parity);
    }
}

static void test_largest(void **state)
{
    (void)state;
    static uint8_t matrix[PRODUCT_MATRIX_MAX];
    uint8_t all[127];
    for (uint32_t i = 0; i < 127; i++)
        all[i] = (uint8_t)i;
    mds_encode_matrix(0, 127, 128, matrix);
    mds_decode_matrix(128, 127, all, all, matrix);
    assert_int_not_equal(matrix[PRODUCT_MATRIX_MAX - 1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_coefficient),
        cmocka_unit_test(test_row_0_is_all_ones),
        cmocka_unit_test(test_rows_and_columns_fit_together),
        cmocka_unit_test(test_decoding_undoes_encoding),
        cmocka_unit_test(test_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
