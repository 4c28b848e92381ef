/*
 * gf256_avx2.c - 32 bytes at once; a product is looked up by half bytes, 16 entries a table, with pshufb.
 *
 * Chunks are read a few at a time, as in gf256_avx512.c, for the same reason.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/gf256_kernels.h"

#if defined(__x86_64__)

#include <assert.h>
#include <immintrin.h>
#include <string.h>

#include "coding/gf256.h"

#define VECTOR_BYTES 32u
/* Vectors of a chunk that a sum takes at once. */
#define SUM_VECTORS 4u
/* As many as a set of the first-level cache has ways. */
#define GROUP_COLUMNS 8u
/* With KERNEL_ROWS_MAX rows half of the first-level cache. */
#define BLOCK_BYTES ((size_t)2048)

#define TARGET __attribute__((target("avx2")))
/* Inlined with a constant number of rows, so that all sums are registers. */
#define TEMPLATE __attribute__((target("avx2"), always_inline)) static inline

static bool runs_here(void)
{
    return __builtin_cpu_supports("avx2");
}

/* One block of bytes of up to GROUP_COLUMNS chunks. */
struct group {
    uint32_t columns;
    const uint8_t *in[GROUP_COLUMNS];
    uintptr_t fetch[GROUP_COLUMNS]; /* what is wanted next; may lie behind the end of a chunk */
    uint64_t nibbles[GROUP_COLUMNS][KERNEL_ROWS_MAX][4];
    uint8_t *sums; /* of a row after the other, BLOCK_BYTES each */
    uint8_t *out[KERNEL_ROWS_MAX];
    bool first; /* there are no sums yet */
    bool last;  /* results go to out */
};

TEMPLATE __m256i load(const uint8_t *at)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

TEMPLATE void store(uint8_t *at, __m256i vector)
{
    _mm256_storeu_si256((__m256i *)(void *)at, vector);
}

/* The same 16 bytes in both halves. */
TEMPLATE __m256i twice(const uint64_t *at)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)at));
}

/* 32 bytes from `at` of all columns and rows. */
TEMPLATE void vector_of_group(const struct group *group, unsigned rows, size_t at)
{
    const __m256i half = _mm256_set1_epi8(0x0f);
    __m256i sums[KERNEL_ROWS_MAX];
#pragma GCC unroll 8
    for (unsigned r = 0; r < rows; r++)
        sums[r] = group->first ? _mm256_setzero_si256() : load(group->sums + r * BLOCK_BYTES + at);
    for (uint32_t j = 0; j < group->columns; j++) {
        __m256i vector = load(group->in[j] + at);
        __m256i low = _mm256_and_si256(vector, half);
        __m256i high = _mm256_and_si256(_mm256_srli_epi64(vector, 4), half);
        _mm_prefetch((const char *)(group->fetch[j] + at), _MM_HINT_T1);
#pragma GCC unroll 8
        for (unsigned r = 0; r < rows; r++) {
            const uint64_t *nibbles = group->nibbles[j][r];
            __m256i of_low = _mm256_shuffle_epi8(twice(nibbles), low);
            __m256i of_high = _mm256_shuffle_epi8(twice(nibbles + 2), high);
            sums[r] = _mm256_xor_si256(sums[r], _mm256_xor_si256(of_low, of_high));
        }
    }
#pragma GCC unroll 8
    for (unsigned r = 0; r < rows; r++)
        store((group->last ? group->out[r] : group->sums + r * BLOCK_BYTES) + at, sums[r]);
}

typedef void group_function(const struct group *group, size_t bytes);

#define GROUP_FUNCTION(rows)                                                                               \
    TARGET static void group_##rows(const struct group *group, size_t bytes)                               \
    {                                                                                                      \
        for (size_t at = 0; at < bytes; at += VECTOR_BYTES)                                                \
            vector_of_group(group, rows, at);                                                              \
    }

GROUP_FUNCTION(1)
GROUP_FUNCTION(2)
GROUP_FUNCTION(3)
GROUP_FUNCTION(4)
GROUP_FUNCTION(5)
GROUP_FUNCTION(6)
GROUP_FUNCTION(7)
GROUP_FUNCTION(8)

static group_function *const group_functions[KERNEL_ROWS_MAX] = {group_1, group_2, group_3, group_4,
                                                                 group_5, group_6, group_7, group_8};

/* Chunk j from `at`, its tables, and what is fetched during it: see kernel_avx512.c. */
static void add_chunk(struct group *group, const struct kernel_task *task, uint32_t j, size_t at)
{
    uint32_t later = task->columns > GROUP_COLUMNS ? j + GROUP_COLUMNS : j + task->columns;
    bool next_block = later >= task->columns;
    uint32_t n = group->columns++;
    group->in[n] = (const uint8_t *)task->in[j] + at;
    group->fetch[n] = (uintptr_t)task->in[next_block ? later - task->columns : later] + at +
                      (next_block ? BLOCK_BYTES : 0);
    for (uint32_t r = 0; r < task->rows; r++)
        memcpy(group->nibbles[n][r], kernel_nibbles[task->matrix[r * task->columns + j]],
               sizeof group->nibbles[n][r]);
}

/* What is left behind the last whole vector. */
static struct kernel_task tail_of(const struct kernel_task *task)
{
    struct kernel_task tail = *task;
    tail.bytes = task->bytes % VECTOR_BYTES;
    tail.from = task->from + task->bytes - tail.bytes;
    return tail;
}

static void product(const struct kernel_task *task)
{
    assert(task->rows >= 1 && task->rows <= KERNEL_ROWS_MAX);
    assert(task->columns >= 1 && task->columns <= PRODUCT_SIDE_MAX);
    uint8_t sums[KERNEL_ROWS_MAX * BLOCK_BYTES];
    const struct kernel_task tail = tail_of(task);
    for (size_t at = task->from; at < tail.from; at += BLOCK_BYTES)
        for (uint32_t j = 0; j < task->columns;) {
            struct group group;
            group.columns = 0;
            group.sums = sums;
            for (uint32_t r = 0; r < task->rows; r++)
                group.out[r] = (uint8_t *)task->out[r] + at;
            group.first = j == 0;
            while (group.columns < GROUP_COLUMNS && j < task->columns)
                add_chunk(&group, task, j++, at);
            group.last = j == task->columns;
            group_functions[task->rows - 1](&group,
                                            tail.from - at < BLOCK_BYTES ? tail.from - at : BLOCK_BYTES);
        }
    if (tail.bytes > 0)
        kernel_base.product(&tail);
}

/* `vectors` times 32 bytes of the sum of all columns. */
TEMPLATE void vectors_of_sum(const struct kernel_task *task, unsigned vectors, size_t at)
{
    __m256i sums[SUM_VECTORS];
#pragma GCC unroll 4
    for (unsigned v = 0; v < vectors; v++)
        sums[v] = load((const uint8_t *)task->in[0] + at + (size_t)v * VECTOR_BYTES);
    for (uint32_t j = 1; j < task->columns; j++)
#pragma GCC unroll 4
        for (unsigned v = 0; v < vectors; v++)
            sums[v] = _mm256_xor_si256(sums[v],
                                       load((const uint8_t *)task->in[j] + at + (size_t)v * VECTOR_BYTES));
#pragma GCC unroll 4
    for (unsigned v = 0; v < vectors; v++)
        store((uint8_t *)task->out[0] + at + (size_t)v * VECTOR_BYTES, sums[v]);
}

TARGET static void sum(const struct kernel_task *task)
{
    assert(task->rows == 1 && task->columns >= 1);
    const struct kernel_task tail = tail_of(task);
    size_t at = task->from;
    for (; at + (size_t)SUM_VECTORS * VECTOR_BYTES <= tail.from; at += (size_t)SUM_VECTORS * VECTOR_BYTES)
        vectors_of_sum(task, SUM_VECTORS, at);
    for (; at < tail.from; at += VECTOR_BYTES)
        vectors_of_sum(task, 1, at);
    if (tail.bytes > 0)
        kernel_base.sum(&tail);
}

const struct kernel kernel_avx2 = {"avx2", runs_here, product, sum};

#endif
