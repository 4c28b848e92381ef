/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/digest.h"

#include <string.h>
#include <xxhash.h>

void digest_of(const struct lh_buffer *buffer, uint8_t out[DIGEST_BYTES])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(buffer->data, buffer->bytes));
    _Static_assert(sizeof canonical == DIGEST_BYTES, "bytes");
    memcpy(out, &canonical, sizeof canonical);
}

/* One buffer's column of the digests. */
struct column {
    const uint8_t *first;
    uint32_t ranks;
    size_t stride;
};

static bool is_equal(const struct column *column, uint32_t one, uint32_t other)
{
    return memcmp(column->first + one * column->stride, column->first + other * column->stride,
                  DIGEST_BYTES) == 0;
}

/* How many ranks from this one on have its digest. */
static uint32_t count_equal(const struct column *column, uint32_t rank)
{
    uint32_t count = 0;
    for (uint32_t r = rank; r < column->ranks; r++)
        count += is_equal(column, rank, r);
    return count;
}

/* The lowest rank that has the digest of most. Once as many have one as are left, the search is over. */
static uint32_t find_most(const struct column *column)
{
    uint32_t best = 0, most = 0;
    for (uint32_t r = 0; r + most < column->ranks; r++) {
        uint32_t count = count_equal(column, r);
        if (count > most) {
            most = count;
            best = r;
        }
    }
    return best;
}

void digests_compare(const uint8_t *digests, uint32_t ranks, uint32_t buffers, bool *differs)
{
    for (uint32_t b = 0; b < buffers; b++) {
        const struct column column = {digests + (size_t)b * DIGEST_BYTES, ranks,
                                      (size_t)buffers * DIGEST_BYTES};
        uint32_t most = find_most(&column);
        for (uint32_t r = 0; r < ranks; r++)
            differs[(size_t)r * buffers + b] = !is_equal(&column, most, r);
    }
}
