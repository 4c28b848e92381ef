/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/coding/parity.h"

#include <assert.h>
#include <stdlib.h>

#include "sdr/memory.h"
#include "store/store.h"

#define ALIGNMENT 64u

static size_t rounded_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t bytes_of(size_t bytes, size_t notes_bytes)
{
    return rounded_up(bytes) + rounded_up(notes_bytes);
}

static void free_buffer(struct parity_pool *pool, struct parity_buffer *buffer)
{
    sdr_mr_drop(buffer->mr);
    store_give(pool->store, buffer->chunks, bytes_of(buffer->bytes, buffer->notes_bytes));
    free(buffer);
}

typedef void *take_memory(struct store *store, size_t bytes);

static struct parity_buffer *make_buffer(struct parity_pool *pool, size_t bytes, size_t notes_bytes,
                                         take_memory *take)
{
    struct parity_buffer *buffer = calloc(1, sizeof *buffer);
    uint8_t *chunks = take(pool->store, bytes_of(bytes, notes_bytes));
    if (!buffer || !chunks)
        goto free_memory;
    struct sdr_mr *mr = sdr_mr_reg(pool->context, chunks, bytes, SDR_ACCESS_REMOTE_WRITE);
    if (!mr)
        goto free_memory;
    *buffer = (struct parity_buffer){
        .chunks = chunks,
        .bytes = bytes,
        .notes = chunks + rounded_up(bytes),
        .notes_bytes = notes_bytes,
        .mr = mr,
    };
    sdr_mr_lkey_get(mr, &buffer->lkey);
    return buffer;
free_memory:
    free(buffer);
    store_give(pool->store, chunks, bytes_of(bytes, notes_bytes));
    return NULL;
}

static bool fits(const struct parity_buffer *buffer, size_t bytes, size_t notes_bytes)
{
    return buffer->bytes >= bytes && buffer->notes_bytes >= notes_bytes;
}

/* The smallest that fits, else any; NULL: there is none. */
static struct parity_buffer *take_unused(struct parity_pool *pool, size_t bytes, size_t notes_bytes)
{
    struct parity_buffer **best = &pool->unused;
    for (struct parity_buffer **at = best; *at; at = &(*at)->next) /* as many as segments in flight were */
        if (fits(*at, bytes, notes_bytes) &&
            (!fits(*best, bytes, notes_bytes) || (*at)->bytes < (*best)->bytes))
            best = at;
    struct parity_buffer *buffer = *best;
    if (buffer)
        *best = buffer->next;
    return buffer;
}

static struct parity_buffer *take_buffer(struct parity_pool *pool, size_t bytes, size_t notes_bytes,
                                         take_memory *take)
{
    assert(bytes > 0);
    struct parity_buffer *buffer = take_unused(pool, bytes, notes_bytes);
    if (buffer && !fits(buffer, bytes, notes_bytes)) {
        /* Of another code, or the other direction: the next one fits both, or each would replace the
         * other's for ever. */
        bytes = larger(bytes, buffer->bytes);
        notes_bytes = larger(notes_bytes, buffer->notes_bytes);
        free_buffer(pool, buffer);
        buffer = NULL;
    }
    if (!buffer)
        buffer = make_buffer(pool, bytes, notes_bytes, take);
    if (buffer)
        pool->in_use++;
    return buffer;
}

struct parity_buffer *parity_take(struct parity_pool *pool, size_t bytes, size_t notes_bytes)
{
    return take_buffer(pool, bytes, notes_bytes, store_take_aligned);
}

struct parity_buffer *parity_try(struct parity_pool *pool, size_t bytes, size_t notes_bytes)
{
    return take_buffer(pool, bytes, notes_bytes, store_try_aligned);
}

void parity_give(struct parity_pool *pool, struct parity_buffer *buffer)
{
    assert(pool->in_use > 0);
    pool->in_use--;
    buffer->next = pool->unused;
    pool->unused = buffer;
}

void parity_free_all(struct parity_pool *pool)
{
    assert(pool->in_use == 0);
    parity_give_back(pool);
}

void parity_give_back(struct parity_pool *pool)
{
    while (pool->unused) { /* at most as many as there ever were segments in flight */
        struct parity_buffer *buffer = pool->unused;
        pool->unused = buffer->next;
        free_buffer(pool, buffer);
    }
}
