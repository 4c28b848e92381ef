/*
 * store.h - memory that the connections of an engine take when they need it and give back when they are idle:
 * all of it is counted, and bounded by the engine's limit.
 *
 * A connection has a store of its own, a part of its engine's: what it takes is counted in both.
 *
 * Any thread may take and give at any time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_STORE_STORE_H
#define LH_STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store {
    struct store *whole;       /* of which this is a part; or NULL */
    _Atomic uint64_t bytes;    /* that are out */
    _Atomic uint64_t most;     /* that ever were */
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

#endif
