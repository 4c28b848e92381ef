/* SPDX-License-Identifier: BSD-3-Clause */
#include "coding/hadamard/hadamard_blocks.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "coding/hadamard/hadamard_kernel.h"
#include "coding/hadamard/hadamard_regions.h"

/* ---- block ----------------------------------------------------------------------------------------- */

/*
 * A long block is transformed in parts that fit the cache, which are then combined, some at a
 * time.
 */

/* Bits that are combined in one pass over memory. */
#define COMBINE_LOG 4u

static const struct hadamard_kernel *kernel_for(const struct group_task *task)
{
    const struct hadamard_kernel *kernel = hadamard_kernel_now();
    return task->zeroed || task->block_log < kernel->block_log_min ? &hadamard_kernel_simple : kernel;
}

static void set_signs(struct group_task *task, struct block_place place, struct block_space *space)
{
    signs_fill(space->signs, place.seed, place.first, (size_t)task->blocks << task->block_log);
    task->signs = space->signs;
}

bool group_encode(struct group_task *task, struct block_place place, struct block_space *space)
{
    set_signs(task, place, space);
    return kernel_for(task)->encode(task, space->scratch);
}

bool group_decode(struct group_task *task, struct block_place place, struct block_space *space)
{
    set_signs(task, place, space);
    return kernel_for(task)->decode(task, space->scratch);
}

static uint32_t combined_bits(uint32_t block_log)
{
    uint32_t bits = block_log - GROUP_BLOCK_LOG_MAX;
    return bits < COMBINE_LOG ? bits : COMBINE_LOG;
}

/* Part i of those of 2^part_log elements. */
static struct group_task part_of(const struct group_task *task, uint32_t part_log, size_t i)
{
    const size_t bytes = (i << part_log) * element_bytes(task->type);
    struct group_task part = *task;
    part.block_log = part.run_log = part_log;
    part.in = (const uint8_t *)task->in + bytes;
    part.out = (uint8_t *)task->out + bytes;
    return part;
}

/* Calls itself for the parts, at most 5 deep. */
bool block_encode(struct group_task *task, struct block_place place, struct block_space *space)
{
    assert(task->blocks == 1 && task->block_log == task->run_log);
    if (task->block_log <= GROUP_BLOCK_LOG_MAX)
        return group_encode(task, place, space);
    assert(task->type == LH_HADAMARD_F32);
    const uint32_t bits = combined_bits(task->block_log);
    const uint32_t part_log = task->block_log - bits;
    bool fits = true;
    for (size_t i = 0; i < (size_t)1 << bits; i++) {
        struct group_task part = part_of(task, part_log, i);
        fits &= block_encode(&part, (struct block_place){place.seed, place.first + (i << part_log)}, space);
    }
    return hadamard_kernel_now()->combine(task->out, (size_t)1 << part_log, bits, 1) && fits;
}

/* As block_encode(), the other way round. */
bool block_decode(struct group_task *task, struct block_place place, struct block_space *space)
{
    assert(task->blocks == 1 && task->block_log == task->run_log);
    if (task->block_log <= GROUP_BLOCK_LOG_MAX)
        return group_decode(task, place, space);
    assert(task->type == LH_HADAMARD_F32 && !task->zeroed);
    const uint32_t bits = combined_bits(task->block_log);
    const uint32_t part_log = task->block_log - bits;
    bool fits = hadamard_kernel_now()->combine((void *)(uintptr_t)task->in, (size_t)1 << part_log, bits,
                                               task->scale);
    for (size_t i = 0; i < (size_t)1 << bits; i++) {
        struct group_task part = part_of(task, part_log, i);
        part.scale = 1;
        fits &= block_decode(&part, (struct block_place){place.seed, place.first + (i << part_log)}, space);
    }
    return fits;
}

/* ---- runs ------------------------------------------------------------------------------------------ */

/* Runs of a few rows and columns at a time, so that the lines of both places stay in the cache. */

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
