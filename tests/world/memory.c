/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"

#define ARENA_BYTES ((size_t)48 << 20)

/* Names that the linker gives. */
/* NOLINTBEGIN(bugprone-reserved-identifier) */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *block);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *block);

static int64_t blocks;
static uint64_t refusals;
static double refuse_chance;
static struct lh_prng refuse_prng;
static _Alignas(64) uint8_t arena[ARENA_BYTES];
static size_t arena_used;
static size_t arena_used_before; /* the last memory_arena_clear() */
static void *lost;

static bool refused(void)
{
    if (!lh_prng_chance(&refuse_prng, refuse_chance))
        return false;
    refusals++;
    return true;
}

static void *counted(void *block)
{
    blocks += block != NULL;
    return block;
}

void *__wrap_malloc(size_t bytes)
{
    return refused() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return refused() ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *block, size_t bytes)
{
    if (refused())
        return NULL;
    void *moved = __real_realloc(block, bytes);
    blocks += block == NULL && moved != NULL;
    return moved;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return refused() ? NULL : counted(__real_aligned_alloc(alignment, bytes));
}

void __wrap_free(void *block)
{
    blocks -= block != NULL;
    __real_free(block);
}
/* NOLINTEND(bugprone-reserved-identifier) */

int64_t memory_blocks(void)
{
    return blocks;
}

void memory_refuse(double chance, uint64_t seed)
{
    refuse_chance = chance;
    lh_prng_seed(&refuse_prng, seed);
}

uint64_t memory_refusals(void)
{
    return refusals;
}

void *memory_arena(size_t bytes)
{
    size_t rounded = (bytes + 63) / 64 * 64;
    if (rounded > ARENA_BYTES - arena_used) {
        fprintf(stderr, "the world's arena of %zu bytes is too small\n", ARENA_BYTES);
        abort();
    }
    void *memory = arena + arena_used;
    arena_used += rounded;
    return memory;
}

void memory_arena_clear(void)
{
    arena_used_before = arena_used;
    arena_used = 0;
}

void memory_arena_fill(int byte)
{
    memset(arena, byte, arena_used_before);
}

void memory_lose_block(void)
{
    lost = malloc(16);
}

void memory_find_block(void)
{
    free(lost);
    lost = NULL;
}
