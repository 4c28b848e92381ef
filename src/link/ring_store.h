/*
 * ring_store.h - consecutive blocks of bytes of a ring, released in any order.
 *
 * For things that leave about as they came. A block that was given back is free again once all older ones
 * are too, so nothing is ever searched for, and what is in use lies together.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LINK_RING_STORE_H
#define LH_LINK_RING_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_STORE_ALIGN 16u

/* Before each block's bytes. */
struct ring_block {
    uint32_t bytes;    /* of the block with this header, a multiple of RING_STORE_ALIGN */
    uint32_t users;    /* 0: given back */
    uint64_t reserved; /* keeps the bytes behind it aligned */
};

struct ring_store {
    uint8_t *memory;
    size_t capacity; /* a multiple of RING_STORE_ALIGN */
    size_t oldest;   /* offset of the oldest block in use */
    size_t next;     /* offset of the next block */
    size_t used;
};

/* False when there is no memory. Pages are allocated only as they are used. */
bool ring_store_init(struct ring_store *store, size_t capacity);
void ring_store_free(struct ring_store *store);
/* Whether ring_store_take(bytes) would succeed. */
bool ring_store_fits(const struct ring_store *store, uint32_t bytes);
/* A block with one user, or NULL when it does not fit. */
void *ring_store_take(struct ring_store *store, uint32_t bytes);
/* One more user, who gives the block back on his own. */
void ring_store_share(void *block);
void ring_store_give_back(struct ring_store *store, void *block);
/* The oldest block in use; NULL when there is none. */
const void *ring_store_oldest(const struct ring_store *store);

#endif
