/*
 * code.c - the public calls: checks, and which code it is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/code.h"

#include <assert.h>

#include "base/error.h"

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
