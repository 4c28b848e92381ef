/*
 * erasure_code.h - encoding a part of the bytes, for threads that share one group of chunks; and the two
 * codes behind the public calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_ERASURE_CODE_H
#define LH_CODING_ERASURE_CODE_H

#include <stdint.h>

#include <longhaul/code.h>

#include "coding/gf256_kernels.h"

/* lh_encode() of the bytes from … from + bytes - 1 of each chunk. */
void code_encode_range(const struct lh_code *code, const void *const *data, void *const *parity,
                       size_t from, size_t bytes);

/* ---- mds matrix ------------------------------------------------------------------------------------ */

/*
 * The matrices of the MDS code: of encoding, and of decoding in closed form.
 *
 * Data chunk j stands for the point y_j = j, parity i for x_i = 255 - i; no two are equal while k + m <= 255.
 *
 *     parity i = sum over j of s_j / (x_i + y_j) * data j,        s_j = x_0 + y_j
 *
 * So prod_j (x_i + y_j) * parity i is the value at x_i of a polynomial of degree below k, whose value at y_j
 * is s_j * prod_l≠j (y_j + y_l) * data j: all chunks are values of that polynomial, times what is known, and
 * any k of them give it (Lagrange). With E the points of what is lost and R those of the parity in its place,
 *
 *     data e = a_e * sum over the k points z at hand of b_z / (e + z) * chunk z
 *     a_e = 1 / s_e * prod_r∈R (e + r) / prod_l∈E, l≠e (e + l)
 *     b_z = (s_z for data, 1 for parity) * prod_l∈E (z + l) / prod_r∈R, r≠z (z + r)
 *
 * again a Cauchy matrix but for factors of rows and columns.
 */

/* matrix[r * k + j] for rows first_row … first_row + rows - 1. */
void mds_encode_matrix(uint32_t first_row, uint32_t rows, uint32_t k, uint8_t matrix[PRODUCT_MATRIX_MAX]);

/*
 * lost[0 … count - 1]: data chunks to be recovered, parity[0 … count - 1]: rows that replace them, both
 * ascending. matrix[r * k + j] is what chunk j counts for in lost[r]; at the place j of lost[n] stands
 * parity[n].
 */
void mds_decode_matrix(uint32_t k, uint32_t count, const uint8_t *lost, const uint8_t *parity,
                       uint8_t matrix[PRODUCT_MATRIX_MAX]);

#endif
