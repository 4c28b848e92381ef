/*
 * runs.c - runs of a few rows and columns at a time, so that the lines of both places stay in the cache.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/hadamard/runs.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define PIECE_BYTES 64u
/* Rows and columns at a time. */
#define PATCH 16u

static inline __attribute__((always_inline)) void swap(uint8_t *a, uint8_t *b, size_t bytes)
{
    uint8_t kept[PIECE_BYTES];
    memcpy(kept, a, bytes);
    memcpy(a, b, bytes);
    memcpy(b, kept, bytes);
}

/* Rows from i, columns from j on. */
static inline __attribute__((always_inline)) void patch(uint8_t *tile, size_t count, size_t run_bytes,
                                                        size_t i, size_t j, size_t piece)
{
    const size_t rows = count - i < PATCH ? count : i + PATCH;
    const size_t columns = count - j < PATCH ? count : j + PATCH;
    for (size_t row = i; row < rows; row++)
        for (size_t column = row < j ? j : row + 1; column < columns; column++) {
            uint8_t *a = tile + (row * count + column) * run_bytes;
            uint8_t *b = tile + (column * count + row) * run_bytes;
            for (size_t at = 0; at < run_bytes; at += piece)
                swap(a + at, b + at, piece);
        }
}

static inline __attribute__((always_inline)) void exchange(uint8_t *tile, size_t count, size_t run_bytes,
                                                           size_t piece)
{
    for (size_t i = 0; i < count; i += PATCH)
        for (size_t j = i; j < count; j += PATCH)
            patch(tile, count, run_bytes, i, j, piece);
}

void runs_exchange(void *tile, size_t count, size_t run_bytes)
{
    switch (run_bytes) {
    case 2:
        exchange(tile, count, 2, 2);
        break;
    case 4:
        exchange(tile, count, 4, 4);
        break;
    case 8:
        exchange(tile, count, 8, 8);
        break;
    case 16:
        exchange(tile, count, 16, 16);
        break;
    case 32:
        exchange(tile, count, 32, 32);
        break;
    default:
        assert(run_bytes % PIECE_BYTES == 0);
        exchange(tile, count, run_bytes, PIECE_BYTES);
    }
}
