/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/memory.h"

#include <stdlib.h>

#include "base/error.h"
#include "message/connection.h"
#include "sdr/memory.h"

struct lh_memory {
    struct lh_engine *engine;
    struct sdr_mr *mr;
    uint32_t lkey;
    uint8_t *address;
    size_t bytes;
    struct lh_memory *next;
    struct lh_memory **link; /* what points to this one */
};

int lh_register(struct lh_connection *connection, void *address, size_t bytes, struct lh_memory **memory)
{
    struct lh_engine *engine = connection->engine;
    struct lh_memory *made = calloc(1, sizeof *made);
    if (!made)
        return lh_fail(LH_ENOMEM, "no memory to register %zu bytes", bytes);
    made->mr = sdr_mr_reg(engine->context, address, bytes, SDR_ACCESS_REMOTE_WRITE);
    if (!made->mr) {
        free(made);
        return lh_fail(LH_ENOMEM, "%zu bytes at %p cannot be registered: %s", bytes, address,
                       lh_last_error());
    }
    sdr_mr_lkey_get(made->mr, &made->lkey);
    made->engine = engine;
    made->address = address;
    made->bytes = bytes;
    pthread_mutex_lock(&engine->lock);
    made->link = &engine->memories.first;
    made->next = engine->memories.first;
    if (made->next)
        made->next->link = &made->next;
    engine->memories.first = made;
    pthread_mutex_unlock(&engine->lock);
    *memory = made;
    return 0;
}

int lh_deregister(struct lh_memory *memory)
{
    if (!memory)
        return 0;
    pthread_mutex_t *lock = &memory->engine->lock;
    pthread_mutex_lock(lock);
    *memory->link = memory->next;
    if (memory->next)
        memory->next->link = memory->link;
    pthread_mutex_unlock(lock);
    sdr_mr_drop(memory->mr);
    free(memory);
    return 0;
}

void memory_free_all(struct memory_list *list)
{
    struct lh_memory *next;
    for (struct lh_memory *memory = list->first; memory; memory = next) {
        next = memory->next;
        sdr_mr_drop(memory->mr);
        free(memory);
    }
    list->first = NULL;
}

static int use_given(struct lh_connection *c, const void *buffer, uint64_t bytes,
                     const struct lh_memory *given, struct message_memory *memory)
{
    uintptr_t offset = (uintptr_t)buffer - (uintptr_t)given->address;
    if (given->engine != c->engine)
        return lh_fail(LH_EINVAL,
                       "memory is registered with another engine, or a connection that has its own");
    if (offset > given->bytes || bytes > given->bytes - offset)
        return lh_fail(LH_EINVAL, "%llu bytes at %p are not within the %zu registered bytes at %p",
                       (unsigned long long)bytes, buffer, given->bytes, (void *)given->address);
    *memory = (struct message_memory){.lkey = given->lkey};
    return 0;
}

int message_memory_get(struct lh_connection *c, const void *buffer, uint64_t bytes, struct lh_memory *given,
                       struct message_memory *memory)
{
    if (bytes > 0 && !buffer)
        return lh_fail(LH_EINVAL, "%llu bytes without a buffer", (unsigned long long)bytes);
    if (given)
        return use_given(c, buffer, bytes, given, memory);
    *memory = (struct message_memory){0};
    if (bytes == 0)
        return 0;
    /* Sending only reads; the SDK has one kind of registration. */
    memory->own = sdr_mr_reg(c->context, (void *)(uintptr_t)buffer, bytes, SDR_ACCESS_REMOTE_WRITE);
    if (!memory->own)
        return lh_fail(LH_ENOMEM, "%llu bytes at %p cannot be registered: %s", (unsigned long long)bytes,
                       buffer, lh_last_error());
    sdr_mr_lkey_get(memory->own, &memory->lkey);
    return 0;
}

void message_memory_put(struct sdr_mr *own)
{
    if (own)
        sdr_mr_drop(own);
}
