/*
 * store.h - memory that the connections of an engine take when they need it and give back when they are idle:
 * all of it is counted, and bounded by the engine's limit.
 *
 * Any thread may take and give at any time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_STORE_STORE_H
#define LH_STORE_STORE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct store {
    _Atomic uint64_t bytes; /* that are out */
    uint64_t limit_bytes;   /* UINT64_MAX: none; never changes while something is out */
};

void store_init(struct store *store, uint64_t limit_bytes);
/* Zeroed, aligned to 16. NULL: no memory, or the limit is reached; lh_last_error() says which. */
void *store_take(struct store *store, size_t bytes);
/* The same, aligned to 64, and not zeroed. */
void *store_take_aligned(struct store *store, size_t bytes);
/* What was taken with that many bytes; or NULL. */
void store_give(struct store *store, void *memory, size_t bytes);
/* They are not the store's any more: whoever has them frees them, and may outlive it. */
void store_forget(struct store *store, size_t bytes);
uint64_t store_bytes(const struct store *store);

#endif
