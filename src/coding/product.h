/*
 * product.h - a matrix over GF(2^8) times chunks, through the kernel in use. Encoding and decoding are this.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_PRODUCT_H
#define LH_CODING_PRODUCT_H

#include <stddef.h>
#include <stdint.h>

#define PRODUCT_SIDE_MAX   254u          /* rows, and columns: k and m of k + m <= 255 */
#define PRODUCT_MATRIX_MAX (127u * 128u) /* rows * columns of the same */

struct product {
    uint32_t rows;
    uint32_t columns;
    const uint8_t *matrix; /* rows * columns, row by row */
    const void *const *in; /* columns */
    void *const *out;      /* rows; overlap neither each other nor in */
};

/* out[r] = sum over j of matrix[r * columns + j] * in[j], for the bytes from … from + bytes - 1 of each. */
void product_run(const struct product *product, size_t from, size_t bytes);

/* out = sum of in[0 … count - 1], for the same bytes; count >= 1. group_bytes: that all sums read which are
 * made one after the other. */
void product_sum(uint32_t count, const void *const *in, void *out, size_t from, size_t bytes,
                 size_t group_bytes);

#endif
