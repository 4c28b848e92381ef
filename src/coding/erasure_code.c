/* SPDX-License-Identifier: BSD-3-Clause */
#include "coding/erasure_code.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <longhaul/code.h>

#include "base/error.h"
#include "coding/gf256.h"
#include "coding/gf256_kernels.h"

/* ---- mds matrix ------------------------------------------------------------------------------------ */

/* Cauchy matrices, in logarithms: a product is a sum, and nothing here is ever 0. */

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

/* ---- mds code -------------------------------------------------------------------------------------- */

/*
 * The Reed-Solomon code: both ways, the right matrix and one product.
 *
 * The stack holds the matrix: 16 KiB, by k * m <= 127 * 128.
 */

static void mds_encode(const struct lh_code *code, uint32_t first_row, uint32_t rows,
                       const void *const *data, void *const *parity, size_t from, size_t bytes)
{
    uint8_t matrix[PRODUCT_MATRIX_MAX];
    mds_encode_matrix(first_row, rows, code->k, matrix);
    struct product product = {rows, code->k, matrix, data, parity};
    product_run(&product, from, bytes);
}

static bool mds_recoverable(const struct lh_code *code, const uint8_t *present)
{
    uint32_t at_hand = 0;
    for (uint32_t i = 0; i < code->k + code->m; i++)
        at_hand += present[i] != 0;
    return at_hand >= code->k;
}

/* Of what is recoverable. */
static void mds_decode(const struct lh_code *code, void *const *chunks, const uint8_t *present,
                       size_t bytes)
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

/* ---- xor code -------------------------------------------------------------------------------------- */

/* The XOR code: chunks j with the same j mod m are a class, with one parity. */

static void xor_encode(const struct lh_code *code, uint32_t first_row, uint32_t rows,
                       const void *const *data, void *const *parity, size_t from, size_t bytes)
{
    for (uint32_t r = 0; r < rows; r++) {
        const void *in[PRODUCT_SIDE_MAX];
        uint32_t count = 0;
        for (uint32_t j = first_row + r; j < code->k; j += code->m)
            in[count++] = data[j];
        product_sum(count, in, parity[r], from, bytes, bytes * code->k);
    }
}

static uint32_t lost_of_class(const struct lh_code *code, const uint8_t *present, uint32_t class)
{
    uint32_t lost = 0;
    for (uint32_t j = class; j < code->k; j += code->m)
        lost += present[j] == 0;
    return lost;
}

static bool xor_recoverable(const struct lh_code *code, const uint8_t *present)
{
    for (uint32_t class = 0; class < code->m; class ++) {
        uint32_t lost = lost_of_class(code, present, class);
        if (lost > 1 || (lost == 1 && !present[code->k + class]))
            return false;
    }
    return true;
}

/* Of what is recoverable. */
static void xor_decode(const struct lh_code *code, void *const *chunks, const uint8_t *present,
                       size_t bytes)
{
    for (uint32_t class = 0; class < code->m; class ++) {
        const void *in[PRODUCT_SIDE_MAX];
        void *out = NULL;
        uint32_t count = 0;
        for (uint32_t j = class; j < code->k; j += code->m) {
            if (present[j])
                in[count++] = chunks[j];
            else
                out = chunks[j];
        }
        if (!out)
            continue;
        in[count++] = chunks[code->k + class];
        product_sum(count, in, out, 0, bytes, bytes * code->k);
    }
}

/* ---- code ------------------------------------------------------------------------------------------ */

/* The public calls: checks, and which code it is. */

/* What makes k and m impossible, or NULL. */
static const char *what_is_wrong(const struct lh_code *code)
{
    if (code->kind != LH_CODE_XOR && code->kind != LH_CODE_MDS)
        return "invalid kind (LH_CODE_XOR or LH_CODE_MDS)";
    if (code->k == 0 || code->m == 0)
        return "k or m is 0 (minimum 1)";
    if (code->k >= LH_CODE_CHUNKS_MAX || code->m > LH_CODE_CHUNKS_MAX - code->k)
        return "k + m exceeds 255";
    if (code->kind == LH_CODE_XOR && code->m > code->k)
        return "m exceeds k (maximum of an XOR code)";
    return NULL;
}

int lh_code_check(const struct lh_code *code)
{
    const char *wrong = what_is_wrong(code);
    if (!wrong)
        return 0;
    if (code->kind == LH_CODE_XOR || code->kind == LH_CODE_MDS)
        return lh_fail(LH_EINVAL, "%s(%u, %u): %s", code->kind == LH_CODE_XOR ? "xor" : "mds", code->k,
                       code->m, wrong);
    return lh_fail(LH_EINVAL, "code %d: %s", (int)code->kind, wrong);
}

static void encode(const struct lh_code *code, uint32_t first_row, uint32_t rows, const void *const *data,
                   void *const *parity, size_t from, size_t bytes)
{
    assert(!what_is_wrong(code));
    assert(first_row <= code->m && rows <= code->m - first_row);
    if (rows == 0 || bytes == 0)
        return;
    if (code->kind == LH_CODE_MDS)
        mds_encode(code, first_row, rows, data, parity, from, bytes);
    else
        xor_encode(code, first_row, rows, data, parity, from, bytes);
}

void code_encode_range(const struct lh_code *code, const void *const *data, void *const *parity,
                       size_t from, size_t bytes)
{
    encode(code, 0, code->m, data, parity, from, bytes);
}

void lh_encode(const struct lh_code *code, const void *const *data, void *const *parity, size_t bytes)
{
    encode(code, 0, code->m, data, parity, 0, bytes);
}

void lh_encode_rows(const struct lh_code *code, uint32_t first_row, uint32_t rows, const void *const *data,
                    void *const *parity, size_t bytes)
{
    encode(code, first_row, rows, data, parity, 0, bytes);
}

bool lh_recoverable(const struct lh_code *code, const uint8_t *present)
{
    assert(!what_is_wrong(code));
    return code->kind == LH_CODE_MDS ? mds_recoverable(code, present) : xor_recoverable(code, present);
}

int lh_decode(const struct lh_code *code, void *const *chunks, const uint8_t *present, size_t bytes)
{
    if (!lh_recoverable(code, present))
        return lh_fail(LH_EUNRECOVERABLE,
                       "%s(%u, %u): unrecoverable losses (retransmit some of the chunks)",
                       code->kind == LH_CODE_MDS ? "mds" : "xor", code->k, code->m);
    if (bytes == 0)
        return 0;
    if (code->kind == LH_CODE_MDS)
        mds_decode(code, chunks, present, bytes);
    else
        xor_decode(code, chunks, present, bytes);
    return 0;
}
