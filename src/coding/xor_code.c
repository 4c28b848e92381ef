/*
 * xor_code.c - the XOR code: chunks j with the same j mod m are a class, with one parity.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/code.h"

#include <assert.h>

#include "coding/product.h"

void xor_encode(const struct lh_code *code, uint32_t first_row, uint32_t rows, const void *const *data,
                void *const *parity, size_t from, size_t bytes)
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

bool xor_recoverable(const struct lh_code *code, const uint8_t *present)
{
    for (uint32_t class = 0; class < code->m; class ++) {
        uint32_t lost = lost_of_class(code, present, class);
        if (lost > 1 || (lost == 1 && !present[code->k + class]))
            return false;
    }
    return true;
}

void xor_decode(const struct lh_code *code, void *const *chunks, const uint8_t *present, size_t bytes)
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
