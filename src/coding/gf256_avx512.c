/*
 * gf256_avx512.c - 64 bytes at once; a multiplication is one instruction, gf2p8affineqb with the bit matrix
 * of its factor, and ternary logic adds two products at once.
 *
 * Chunks lie a power of two apart, so that the same place of all of them falls into a few sets of each cache:
 * 32 chunks of 64 KiB that are read side by side drive each other out before they are used. So only
 * GROUP_COLUMNS are, for a block of bytes, and sums wait in the first-level cache until it is the turn of the
 * next ones, which are fetched into the second-level cache meanwhile.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/gf256_kernels.h"

#if defined(__x86_64__)

#include <assert.h>
#include <immintrin.h>

#include "coding/gf256.h"

#define VECTOR_BYTES 64u
/* Vectors of a chunk that a sum takes at once. */
#define SUM_VECTORS 4u
/* As many as a set of the first-level cache has ways. */
#define GROUP_COLUMNS 8u
/* With KERNEL_ROWS_MAX rows half of the first-level cache. */
#define BLOCK_BYTES ((size_t)2048)

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,gfni")))
/* Inlined with a constant number of rows, so that all sums are registers. */
#define TEMPLATE __attribute__((target("avx512f,avx512bw,avx512vl,gfni"), always_inline)) static inline

static bool runs_here(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("gfni");
}

/* One block of bytes of up to GROUP_COLUMNS chunks. */
struct group {
    uint32_t columns; /* when odd, there is one more for a product, of zeros */
    const uint8_t *in[GROUP_COLUMNS];
    uintptr_t fetch[GROUP_COLUMNS]; /* what is wanted next; may lie behind the end of a chunk */
    const uint64_t *factors;        /* of all rows, for one column after the other */
    uint8_t *sums;                  /* of a row after the other, BLOCK_BYTES each */
    uint8_t *const *out;
    bool first;  /* there are no sums yet */
    bool last;   /* results go to out */
    bool stream; /* past the caches */
};

TEMPLATE __m512i load(const uint8_t *at, __mmask64 mask, bool whole)
{
    return whole ? _mm512_loadu_si512(at) : _mm512_maskz_loadu_epi8(mask, at);
}

/* A sum of row r: to where it waits, or to where it belongs. */
TEMPLATE void store(const struct group *group, unsigned r, size_t at, __m512i sum, __mmask64 mask,
                    bool whole)
{
    if (!group->last)
        _mm512_store_si512(group->sums + r * BLOCK_BYTES + at, sum);
    else if (!whole)
        _mm512_mask_storeu_epi8(group->out[r] + at, mask, sum);
    else if (group->stream)
        _mm512_stream_si512((__m512i *)(void *)(group->out[r] + at), sum);
    else
        _mm512_storeu_si512(group->out[r] + at, sum);
}

TEMPLATE __m512i times(__m512i vector, uint64_t factor)
{
    __m512i matrices = _mm512_set1_epi64((long long)factor);
#if defined(__clang__)
    /* Clang before 20 encodes a wrong address where the multiplication itself repeats a factor out of memory
     * (LLVM pull request 120340), so it must not do that. */
    __asm__("" : "+v"(matrices));
#endif
    return _mm512_gf2p8affine_epi64_epi8(vector, matrices, 0);
}

TEMPLATE __m512i add(__m512i a, __m512i b, __m512i c)
{
    return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}

/* 64 bytes from `at`, of all columns and rows; less, those of the mask, when not whole. */
TEMPLATE void vector_of_group(const struct group *group, unsigned rows, bool first_is_sum, uint32_t columns,
                              size_t at, __mmask64 mask, bool whole)
{
    __m512i sums[KERNEL_ROWS_MAX];
#pragma GCC unroll 8
    for (unsigned r = 0; r < rows; r++)
        sums[r] =
            group->first ? _mm512_setzero_si512() : _mm512_load_si512(group->sums + r * BLOCK_BYTES + at);
        /* Two columns at a time: add() takes two products. */
#pragma GCC unroll 4
    for (uint32_t j = 0; j < columns; j += 2) {
        const uint64_t *factors = group->factors + (size_t)j * KERNEL_ROWS_MAX;
        __m512i left = load(group->in[j] + at, mask, whole);
        __m512i right = load(group->in[j + 1] + at, mask, whole);
        _mm_prefetch((const char *)(group->fetch[j] + at), _MM_HINT_T1);
        _mm_prefetch((const char *)(group->fetch[j + 1] + at), _MM_HINT_T1);
        if (first_is_sum)
            sums[0] = add(sums[0], left, right);
#pragma GCC unroll 8
        for (unsigned r = first_is_sum; r < rows; r++)
            sums[r] = add(sums[r], times(left, factors[r]), times(right, factors[KERNEL_ROWS_MAX + r]));
    }
#pragma GCC unroll 8
    for (unsigned r = 0; r < rows; r++)
        store(group, r, at, sums[r], mask, whole);
}

/* The bytes of a vector that begins this far before the end. */
TEMPLATE __mmask64 bytes_left(size_t bytes)
{
    return bytes >= VECTOR_BYTES ? ~UINT64_C(0) : (UINT64_C(1) << bytes) - 1;
}

TEMPLATE void all_of_group(const struct group *group, unsigned rows, bool first_is_sum, size_t bytes)
{
    size_t at = 0;
    if (group->columns == GROUP_COLUMNS) /* nearly always: no loop in the loop */
        for (; at + VECTOR_BYTES <= bytes; at += VECTOR_BYTES)
            vector_of_group(group, rows, first_is_sum, GROUP_COLUMNS, at, 0, true);
    for (; at + VECTOR_BYTES <= bytes; at += VECTOR_BYTES)
        vector_of_group(group, rows, first_is_sum, group->columns, at, 0, true);
    if (at < bytes)
        vector_of_group(group, rows, first_is_sum, group->columns, at, bytes_left(bytes - at), false);
}

typedef void group_function(const struct group *group, size_t bytes);

#define GROUP_FUNCTIONS(rows)                                                                              \
    TARGET static void group_##rows(const struct group *group, size_t bytes)                               \
    {                                                                                                      \
        all_of_group(group, rows, false, bytes);                                                           \
    }                                                                                                      \
    TARGET static void group_with_sum_##rows(const struct group *group, size_t bytes)                      \
    {                                                                                                      \
        all_of_group(group, rows, true, bytes);                                                            \
    }

GROUP_FUNCTIONS(1)
GROUP_FUNCTIONS(2)
GROUP_FUNCTIONS(3)
GROUP_FUNCTIONS(4)
GROUP_FUNCTIONS(5)
GROUP_FUNCTIONS(6)
GROUP_FUNCTIONS(7)
GROUP_FUNCTIONS(8)

static group_function *const group_functions[2][KERNEL_ROWS_MAX] = {
    {group_1, group_2, group_3, group_4, group_5, group_6, group_7, group_8},
    {group_with_sum_1, group_with_sum_2, group_with_sum_3, group_with_sum_4, group_with_sum_5,
     group_with_sum_6, group_with_sum_7, group_with_sum_8},
};

/* Only whole cache lines go past a cache. */
static bool can_stream(const struct kernel_task *task)
{
    uintptr_t places = 0;
    for (uint32_t r = 0; r < task->rows; r++)
        places |= (uintptr_t)task->out[r] + task->from;
    return task->stream && places % VECTOR_BYTES == 0;
}

/*
 * Chunk j, from `at`; and what is fetched during it, so that each place is fetched once, shortly before it is
 * its turn: the same bytes of the chunk that comes GROUP_COLUMNS later, or the next block of an early one.
 */
static void add_chunk(struct group *group, const struct kernel_task *task, uint32_t j, size_t at)
{
    uint32_t later = task->columns > GROUP_COLUMNS ? j + GROUP_COLUMNS : j + task->columns;
    bool next_block = later >= task->columns;
    group->in[group->columns] = (const uint8_t *)task->in[j] + at;
    group->fetch[group->columns] = (uintptr_t)task->in[next_block ? later - task->columns : later] + at +
                                   (next_block ? BLOCK_BYTES : 0);
    group->columns++;
}

/* `vectors` times 64 bytes of the sum of all columns; nothing has to be fetched ahead, the CPU sees to it. */
TEMPLATE void vectors_of_sum(const struct group *group, unsigned vectors, size_t at, __mmask64 mask,
                             bool whole)
{
    __m512i sums[SUM_VECTORS];
    const uint8_t *begin = group->first ? group->in[0] : group->sums;
#pragma GCC unroll 4
    for (unsigned v = 0; v < vectors; v++)
        sums[v] = load(begin + at + (size_t)v * VECTOR_BYTES, mask, whole);
    uint32_t j = group->first;
    for (; j + 1 < group->columns; j += 2)
#pragma GCC unroll 4
        for (unsigned v = 0; v < vectors; v++)
            sums[v] = add(sums[v], load(group->in[j] + at + (size_t)v * VECTOR_BYTES, mask, whole),
                          load(group->in[j + 1] + at + (size_t)v * VECTOR_BYTES, mask, whole));
    if (j < group->columns)
#pragma GCC unroll 4
        for (unsigned v = 0; v < vectors; v++)
            sums[v] =
                _mm512_xor_si512(sums[v], load(group->in[j] + at + (size_t)v * VECTOR_BYTES, mask, whole));
#pragma GCC unroll 4
    for (unsigned v = 0; v < vectors; v++)
        store(group, 0, at + (size_t)v * VECTOR_BYTES, sums[v], mask, whole);
}

TARGET static void sum_of_group(const struct group *group, size_t bytes)
{
    size_t at = 0;
    for (; at + (size_t)SUM_VECTORS * VECTOR_BYTES <= bytes; at += (size_t)SUM_VECTORS * VECTOR_BYTES)
        vectors_of_sum(group, SUM_VECTORS, at, 0, true);
    for (; at < bytes; at += VECTOR_BYTES)
        vectors_of_sum(group, 1, at, bytes_left(bytes - at), false);
}

/* Where a pair of columns lacks one. */
static void add_zeros(struct group *group)
{
    static const uint8_t zeros[BLOCK_BYTES];
    group->in[group->columns] = zeros;
    group->fetch[group->columns] = (uintptr_t)zeros;
}

/* Calls `run` for each block of bytes, and in it for each group of columns. */
static void run_groups(const struct kernel_task *task, const uint64_t *factors, size_t block_bytes,
                       bool stream, group_function *run)
{
    _Alignas(VECTOR_BYTES) uint8_t sums[KERNEL_ROWS_MAX * BLOCK_BYTES];
    const size_t end = task->from + task->bytes;
    for (size_t at = task->from; at < end; at += block_bytes) {
        uint8_t *out[KERNEL_ROWS_MAX];
        for (uint32_t r = 0; r < task->rows; r++)
            out[r] = (uint8_t *)task->out[r] + at;
        for (uint32_t j = 0; j < task->columns;) {
            struct group group = {
                .factors = factors ? factors + (size_t)j * KERNEL_ROWS_MAX : NULL,
                .sums = sums,
                .out = out,
                .first = j == 0,
                .stream = stream,
            };
            while (group.columns < GROUP_COLUMNS && j < task->columns)
                add_chunk(&group, task, j++, at);
            if (group.columns % 2 != 0)
                add_zeros(&group);
            group.last = j == task->columns;
            run(&group, end - at < block_bytes ? end - at : block_bytes);
        }
    }
    if (stream)
        _mm_sfence();
}

static void product(const struct kernel_task *task)
{
    assert(task->rows >= 1 && task->rows <= KERNEL_ROWS_MAX);
    assert(task->columns >= 1 && task->columns <= PRODUCT_SIDE_MAX);
    uint64_t factors[(PRODUCT_SIDE_MAX + 1) * KERNEL_ROWS_MAX];
    for (uint32_t r = 0; r < KERNEL_ROWS_MAX; r++)
        factors[task->columns * KERNEL_ROWS_MAX + r] = 0;
    for (uint32_t r = 0; r < task->rows; r++)
        for (uint32_t j = 0; j < task->columns; j++)
            factors[j * KERNEL_ROWS_MAX + r] = kernel_affine[task->matrix[r * task->columns + j]];
    run_groups(task, factors, BLOCK_BYTES, can_stream(task),
               group_functions[task->first_is_sum][task->rows - 1]);
}

static void sum(const struct kernel_task *task)
{
    assert(task->rows == 1 && task->columns >= 1 && task->columns <= PRODUCT_SIDE_MAX);
    /* What is one group has no sums that wait. */
    size_t block_bytes = task->columns <= GROUP_COLUMNS ? KERNEL_BYTES_MAX : BLOCK_BYTES;
    run_groups(task, NULL, block_bytes, can_stream(task), sum_of_group);
}

const struct kernel kernel_avx512_gfni = {"avx512-gfni", runs_here, product, sum};

#endif
