/*
 * mds_matrix.c - Cauchy matrices, in logarithms: a product is a sum, and nothing here is ever 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/mds_matrix.h"

#include <assert.h>
#include <stdbool.h>

#include "coding/gf256.h"

static uint8_t point_of_parity(uint32_t row)
{
    assert(row < GF256_ORDER);
    return (uint8_t)(GF256_ORDER - row);
}

/* Of the sum of two points; 0 when they are one. */
static uint32_t log_of_sum(uint8_t a, uint8_t b)
{
    return gf256_log[a ^ b];
}

void mds_encode_matrix(uint32_t first_row, uint32_t rows, uint32_t k, uint8_t matrix[PRODUCT_MATRIX_MAX])
{
    assert(rows * k <= PRODUCT_MATRIX_MAX && k + first_row + rows <= GF256_ORDER);
    uint16_t scale_log[PRODUCT_SIDE_MAX]; /* less than 2 * GF256_ORDER, whatever is taken off */
    for (uint32_t j = 0; j < k; j++)
        scale_log[j] = (uint16_t)(GF256_ORDER + log_of_sum(point_of_parity(0), (uint8_t)j));
    for (uint32_t r = 0; r < rows; r++) {
        uint8_t point = point_of_parity(first_row + r);
        for (uint32_t j = 0; j < k; j++)
            *matrix++ = gf256_power[scale_log[j] - log_of_sum(point, (uint8_t)j)];
    }
}

/* Product of (at + p) over some points p, at itself left out. */
static uint32_t log_of_product(uint8_t at, const uint8_t *points, uint32_t count)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += log_of_sum(at, points[i]);
    return sum % GF256_ORDER;
}

void mds_decode_matrix(uint32_t k, uint32_t count, const uint8_t *lost, const uint8_t *parity,
                       uint8_t matrix[PRODUCT_MATRIX_MAX])
{
    assert(count >= 1 && count <= k && k + count <= GF256_ORDER && count * k <= PRODUCT_MATRIX_MAX);
    uint8_t parity_points[PRODUCT_SIDE_MAX];
    uint8_t points[PRODUCT_SIDE_MAX]; /* that are at hand, in the order of columns */
    uint8_t column_log[PRODUCT_SIDE_MAX];
    uint32_t replaced = 0;
    for (uint32_t n = 0; n < count; n++)
        parity_points[n] = point_of_parity(parity[n]);
    for (uint32_t j = 0; j < k; j++) {
        bool is_lost = replaced < count && lost[replaced] == j;
        points[j] = is_lost ? parity_points[replaced++] : (uint8_t)j;
        uint32_t log = is_lost ? 0 : log_of_sum(point_of_parity(0), (uint8_t)j);
        log += log_of_product(points[j], lost, count);
        log += GF256_ORDER - log_of_product(points[j], parity_points, count);
        column_log[j] = (uint8_t)(log % GF256_ORDER);
    }
    assert(replaced == count);
    for (uint32_t r = 0; r < count; r++) {
        uint32_t row_log = log_of_product(lost[r], parity_points, count);
        row_log += GF256_ORDER - log_of_product(lost[r], lost, count);
        row_log += GF256_ORDER - log_of_sum(point_of_parity(0), lost[r]);
        row_log %= GF256_ORDER;
        for (uint32_t j = 0; j < k; j++) {
            uint32_t log = row_log + column_log[j];
            log -= log >= GF256_ORDER ? GF256_ORDER : 0;
            *matrix++ = gf256_power[log + GF256_ORDER - log_of_sum(lost[r], points[j])];
        }
    }
}
