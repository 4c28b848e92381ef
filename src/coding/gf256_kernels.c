/*
 * product.c - cuts a product into what a kernel takes at once.
 *
 * A stretch of all chunks at a time, so that what goes in is still in the cache when the next rows need it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/product.h"

#include <assert.h>
#include <stdbool.h>

#include "coding/kernel.h"

/* The next rows read the same stretch of all chunks again: 254 of these are 4 MiB. */
#define STRETCH_BYTES ((size_t)16 << 10)

/* What is read in all, from which on results go past the caches: they would hardly stay there until they are
 * read again, and a line that is written through a cache is read before. The second-level cache of a server's
 * core has 1 or 2 MiB. */
#define STREAM_BYTES ((size_t)1 << 20)

static bool all_ones(const uint8_t *row, uint32_t columns)
{
    for (uint32_t j = 0; j < columns; j++)
        if (row[j] != 1)
            return false;
    return true;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

void product_run(const struct product *product, size_t from, size_t bytes)
{
    assert(product->rows >= 1 && product->columns >= 1);
    assert(product->rows * product->columns <= PRODUCT_MATRIX_MAX);
    const size_t end = from + bytes;
    const bool first_is_sum = all_ones(product->matrix, product->columns);
    if (product->rows == 1 && first_is_sum) {
        product_sum(product->columns, product->in, product->out[0], from, bytes, bytes * product->columns);
        return;
    }
    const size_t stretch = product->rows > KERNEL_ROWS_MAX ? STRETCH_BYTES : KERNEL_BYTES_MAX;
    for (size_t at = from; at < end; at += stretch)
        for (uint32_t row = 0; row < product->rows; row += KERNEL_ROWS_MAX) {
            struct kernel_task task = {
                .rows = (uint32_t)smaller(product->rows - row, KERNEL_ROWS_MAX),
                .columns = product->columns,
                .first_is_sum = row == 0 && first_is_sum,
                .matrix = product->matrix + row * product->columns,
                .in = product->in,
                .out = product->out + row,
                .stream = bytes * product->columns >= STREAM_BYTES,
                .from = at,
                .bytes = smaller(end - at, stretch),
            };
            kernel_now()->product(&task);
        }
}

void product_sum(uint32_t count, const void *const *in, void *out, size_t from, size_t bytes,
                 size_t group_bytes)
{
    assert(count >= 1 && count <= PRODUCT_SIDE_MAX);
    const size_t end = from + bytes;
    for (size_t at = from; at < end; at += KERNEL_BYTES_MAX) {
        struct kernel_task task = {
            .rows = 1,
            .columns = count,
            .first_is_sum = true,
            .in = in,
            .out = &out,
            .stream = group_bytes >= STREAM_BYTES,
            .from = at,
            .bytes = smaller(end - at, KERNEL_BYTES_MAX),
        };
        kernel_now()->sum(&task);
    }
}
