/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/hybrid.h"

#include <assert.h>
#include <string.h>

#include <longhaul/scheme.h>

#include "base/big_endian.h"

static_assert(HYBRID_ROWS_BYTES + HYBRID_ROWS_MAX == LH_SCHEME_MESSAGE_MAX, "as many as fit");

static int possible(const struct hybrid_rows *rows)
{
    return rows->count >= 1 && rows->count <= HYBRID_ROWS_MAX &&
           rows->first <= UINT32_MAX - HYBRID_ROWS_MAX;
}

size_t hybrid_rows_encode(const struct hybrid_rows *rows, uint8_t *out)
{
    assert(possible(rows));
    out[0] = HYBRID_ROWS_KIND;
    out[1] = 0;
    lh_put_be16(out + 2, rows->count);
    lh_put_be32(out + 4, rows->mark);
    lh_put_be32(out + 8, rows->first);
    memcpy(out + HYBRID_ROWS_BYTES, rows->rows, rows->count);
    return HYBRID_ROWS_BYTES + (size_t)rows->count;
}

int hybrid_rows_decode(const uint8_t *data, size_t bytes, struct hybrid_rows *rows)
{
    if (bytes < HYBRID_ROWS_BYTES || data[0] != HYBRID_ROWS_KIND || data[1] != 0)
        return -1;
    rows->count = lh_get_be16(data + 2);
    rows->mark = lh_get_be32(data + 4);
    rows->first = lh_get_be32(data + 8);
    if (!possible(rows) || bytes != HYBRID_ROWS_BYTES + (size_t)rows->count)
        return -1;
    memcpy(rows->rows, data + HYBRID_ROWS_BYTES, rows->count);
    return 0;
}
