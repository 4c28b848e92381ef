/*
 * arena.h - memory that a simulation gets once, at set-up, from its caller.
 *
 * Everything is laid out twice by the same code: first into an arena without memory, which only counts, then
 * into one of that size. So the simulator itself allocates nothing, ever. The memory is zeroed by whoever
 * provides it; large parts (the packet pool) are touched only when they are used.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_BASE_ARENA_H
#define LH_NETSIM_BASE_ARENA_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

struct netsim_arena {
    unsigned char *base; /* NULL: only count. Aligned to 64 */
    size_t used_bytes;
    size_t capacity_bytes; /* of base */
};

/* `count` items of `item_bytes`, aligned to 64 bytes. NULL while only counting: the caller then must not
 * touch what it got. SIZE_MAX in used_bytes means that the sum exceeds a size_t. */
static inline void *netsim_arena_take(struct netsim_arena *arena, size_t count, size_t item_bytes)
{
    size_t bytes = 0;
    size_t end = 0;
    size_t start = arena->used_bytes;
    if (start == SIZE_MAX || __builtin_mul_overflow(count, item_bytes, &bytes) ||
        __builtin_add_overflow(start, bytes, &end) || end > SIZE_MAX - 64) {
        arena->used_bytes = SIZE_MAX;
        return NULL;
    }
    arena->used_bytes = (end + 63) & ~(size_t)63;
    if (arena->base == NULL)
        return NULL;
    assert(arena->used_bytes <= arena->capacity_bytes);
    return arena->base + start;
}

#endif
