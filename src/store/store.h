/*
 * store.h - memory of an engine's connections, taken on demand and returned when idle, counted and bounded;
 * rings in it.
 *
 * A connection has a store of its own, a part of its engine's: what it takes is counted in both.
 *
 * Any thread may take and give at any time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_STORE_STORE_H
#define LH_STORE_STORE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/error.h>
#include <longhaul/types.h>

struct store {
    struct store *whole;       /* of which this is a part; or NULL */
    _Atomic uint64_t bytes;    /* that are out */
    _Atomic uint64_t maximum;  /* that ever were */
    _Atomic uint64_t refusals; /* how often a limit was reached */
    _Atomic uint64_t yields;   /* how often a part that got none gave all back that it had */
    uint64_t limit_bytes;      /* UINT64_MAX: none; never changes while something is out */
};

void store_init(struct store *store, uint64_t limit_bytes);
/* Without a limit of its own. The whole outlives it. */
void store_init_part(struct store *store, struct store *whole);

/* In all of these store may be NULL: memory that is not counted.
 *
 * Zeroed, aligned to 16. NULL: no memory, or the limit is reached; lh_last_error() says which. */
void *store_take(struct store *store, size_t bytes);
/* The same, aligned to 64, and not zeroed. */
void *store_take_aligned(struct store *store, size_t bytes);
/* The same of what the caller can do without: at the limit there is none, and that is no refusal. */
void *store_try(struct store *store, size_t bytes);
void *store_try_aligned(struct store *store, size_t bytes);
/* What was taken with that many bytes; or NULL. */
void store_give(struct store *store, void *memory, size_t bytes);
/* Counts memory that the caller has, or is about to take, from elsewhere. False: the limit is reached. */
bool store_count(struct store *store, size_t bytes);
/* They are not the store's any more: whoever has them frees them, and may outlive it. */
void store_forget(struct store *store, size_t bytes);
uint64_t store_bytes(const struct store *store);

/* ---- ring ------------------------------------------------------------------------------------------ */

/*
 * Entries by their number, which counts up and wraps: a ring that doubles when its numbers need more
 * places, up to a bound, and that takes no memory while it is empty.
 *
 * The owner knows which numbers are in use. An entry moves when the ring grows: no pointer outlives
 * ring_hold().
 */

struct ring {
    uint8_t *entries;
    uint32_t entry_bytes;
    uint32_t size;    /* places: 0, or a power of two */
    uint32_t maximum; /* a power of two */
};

/* Without memory. most: a power of two. */
static inline void ring_init(struct ring *ring, size_t entry_bytes, uint32_t maximum)
{
    assert(maximum > 0 && (maximum & (maximum - 1)) == 0);
    *ring = (struct ring){.entry_bytes = (uint32_t)entry_bytes, .maximum = maximum};
}

/* Places for the numbers first … first + count - 1, count at most `most`. Entries keep their contents, new
 * ones are zeroed. False: no memory, nothing has changed; lh_last_error() has the reason. */
bool ring_hold(struct ring *ring, struct store *store, uint32_t first, uint32_t count);
/* No entry is in use. */
void ring_free(struct ring *ring, struct store *store);

/* A number that ring_hold() was called for. */
static inline void *ring_at(const struct ring *ring, uint32_t number)
{
    return ring->entries + (size_t)(number & (ring->size - 1)) * ring->entry_bytes;
}

/* ---- idle ------------------------------------------------------------------------------------------ */

/*
 * When memory is given back: not used for STORE_IDLE_NS. Pure.
 *
 * Timer: at. Runs while memory may be out; each look moves it on while there were uses since the last one.
 */

/* How long an owner keeps what it does not use. */
#define STORE_IDLE_NS LH_NS_PER_S

struct idle {
    uint32_t uses;  /* wraps */
    uint32_t noted; /* uses when `at` was set */
    lh_time at;     /* LH_TIME_NEVER: nothing to be given back; 0: to be set */
};

static inline void idle_init(struct idle *idle)
{
    *idle = (struct idle){.at = LH_TIME_NEVER};
}

/* Whenever memory is taken, or is not needed any more. */
static inline void idle_note(struct idle *idle)
{
    idle->uses++;
    if (idle->at == LH_TIME_NEVER)
        idle->at = 0;
}

/* True when what is not in use is to be given back: no other look is due then before the next use. */
static inline bool idle_is_over(struct idle *idle, lh_time now)
{
    if (idle->at == 0 || (idle->at <= now && idle->uses != idle->noted)) {
        idle->noted = idle->uses;
        idle->at = now + STORE_IDLE_NS;
    }
    if (idle->at > now)
        return false;
    idle->at = LH_TIME_NEVER;
    return true;
}

#endif
