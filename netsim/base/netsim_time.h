/*
 * netsim_time.h - time in the simulated network in picoseconds, so that a byte at 400 Gbit/s (20 ps) is a
 * whole number; the arena of a simulation.
 *
 * 64 bits hold 213 days. Outside the simulator time is lh_time, nanoseconds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_BASE_NETSIM_TIME_H
#define LH_NETSIM_BASE_NETSIM_TIME_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t netsim_time; /* picoseconds since the simulation began, or an interval */

#define NETSIM_NEVER     UINT64_MAX
#define NETSIM_PS_PER_NS ((netsim_time)1000)
#define NETSIM_PS_PER_US ((netsim_time)1000000)
#define NETSIM_PS_PER_MS ((netsim_time)1000000000)
#define NETSIM_PS_PER_S  ((netsim_time)1000000000000)
/* All that a simulation does it does before this, 106 days. A sum of two such never wraps. */
#define NETSIM_TIME_MAX (UINT64_MAX / 2)

/* Slowest and fastest link, so that the time of a byte fits a 64-bit fixed-point number even for the
 * longest packet. */
#define NETSIM_RATE_MIN ((uint64_t)1000000)         /* 1 Mbit/s */
#define NETSIM_RATE_MAX ((uint64_t)100000000000000) /* 100 Tbit/s */

/* Picoseconds a byte takes, times 2^16, rounded to nearest: exact at 100, 400 and 1,600 Gbit/s, and within
 * 1e-6 of the truth at any rate up to 1 Tbit/s. */
static inline uint64_t netsim_ps_per_byte_q16(uint64_t rate_bps)
{
    return (((uint64_t)8 * NETSIM_PS_PER_S << 16) + rate_bps / 2) / rate_bps;
}

/* How long `bytes` (at most 65,535) occupy a link. */
static inline netsim_time netsim_serialization_ps(uint64_t ps_per_byte_q16, uint32_t bytes)
{
    return (ps_per_byte_q16 * bytes + (1u << 15)) >> 16;
}

/* ---- arena ----------------------------------------------------------------------------------------- */

/*
 * Memory that a simulation gets once, at set-up, from its caller.
 *
 * Everything is laid out twice by the same code: first into an arena without memory, which only counts, then
 * into one of that size. So the simulator itself allocates nothing, ever. The memory is zeroed by whoever
 * provides it; large parts (the packet pool) are touched only when they are used.
 */

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
