/*
 * mds_code.c - the Reed-Solomon code: both ways, the right matrix and one product.
 *
 * The stack holds the matrix: 16 KiB, by k * m <= 127 * 128.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/code.h"

#include <assert.h>

#include "coding/mds_matrix.h"
#include "coding/product.h"

void mds_encode(const struct lh_code *code, uint32_t first_row, uint32_t rows, const void *const *data,
                void *const *parity, size_t from, size_t bytes)
{
    uint8_t matrix[PRODUCT_MATRIX_MAX];
    mds_encode_matrix(first_row, rows, code->k, matrix);
    struct product product = {rows, code->k, matrix, data, parity};
    product_run(&product, from, bytes);
}

bool mds_recoverable(const struct lh_code *code, const uint8_t *present)
{
    uint32_t at_hand = 0;
    for (uint32_t i = 0; i < code->k + code->m; i++)
        at_hand += present[i] != 0;
    return at_hand >= code->k;
}

void mds_decode(const struct lh_code *code, void *const *chunks, const uint8_t *present, size_t bytes)
{
    const void *in[PRODUCT_SIDE_MAX];
    void *out[PRODUCT_SIDE_MAX];
    uint8_t lost[PRODUCT_SIDE_MAX];
    uint8_t parity[PRODUCT_SIDE_MAX];
    uint32_t count = 0;
    uint32_t row = 0; /* of the next parity */
    for (uint32_t j = 0; j < code->k; j++) {
        if (present[j]) {
            in[j] = chunks[j];
            continue;
        }
        while (row < code->m && !present[code->k + row])
            row++;
        assert(row < code->m); /* it is recoverable */
        in[j] = chunks[code->k + row];
        out[count] = chunks[j];
        lost[count] = (uint8_t)j;
        parity[count++] = (uint8_t)row++;
    }
    if (count == 0)
        return;
    uint8_t matrix[PRODUCT_MATRIX_MAX];
    mds_decode_matrix(code->k, count, lost, parity, matrix);
    struct product product = {count, code->k, matrix, in, out};
    product_run(&product, 0, bytes);
}
