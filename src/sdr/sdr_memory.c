/*
 * Registered memory: a table, by key, that all QPs of a context share, and that every post is checked
 * against. Software fabrics need no more; verbs registers with the device as well.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/sdr_driver.h"

#include <stdlib.h>

#include "base/error.h"
#include "sdr/qp.h"
#include "sdr/sdr_state.h"

struct sdr_mr {
    struct sdr_context *context;
    struct sdr_mr *next;
    uint64_t address;
    size_t bytes;
    uint32_t lkey;
    void *handle; /* the fabric's */
};

/* Keys count up from a start of their own, so that a stale or guessed key is refused. */
static uint32_t next_key(struct sdr_context *context)
{
    pthread_mutex_lock(&context->memory_lock);
    uint32_t key = ++context->memory_keys;
    pthread_mutex_unlock(&context->memory_lock);
    return key;
}

/* Keys count up here, but a device's may have anything in any of their bits. */
static struct sdr_mr **list_of(struct sdr_context *context, uint32_t lkey)
{
    return &context->memory[lkey * UINT32_C(2654435769) >> (32 - CONTEXT_MEMORY_LISTS_LOG)];
}

static void list_add(struct sdr_mr *mr)
{
    struct sdr_context *context = mr->context;
    struct sdr_mr **list = list_of(context, mr->lkey);
    pthread_mutex_lock(&context->memory_lock);
    mr->next = *list;
    *list = mr;
    context->memory_count++;
    pthread_mutex_unlock(&context->memory_lock);
}

struct sdr_mr *sdr_mr_reg(struct sdr_context *context, void *addr, size_t length,
                          enum sdr_access_flags flags)
{
    if (!context || (!addr && length) || flags != SDR_ACCESS_REMOTE_WRITE) {
        lh_fail(LH_EINVAL, "memory registration: context %p, address %p, flags %d: flags must be 0",
                (void *)context, addr, (int)flags);
        return NULL;
    }
    struct sdr_mr *mr = calloc(1, sizeof *mr);
    if (!mr) {
        lh_fail(LH_ENOMEM, "no memory for a registration");
        return NULL;
    }
    *mr = (struct sdr_mr){.context = context, .address = (uint64_t)(uintptr_t)addr, .bytes = length};
    const struct fabric_ops *ops = context->fabric->ops;
    if (ops->memory_register &&
        ops->memory_register(context->fabric, addr, length, &mr->lkey, &mr->handle)) {
        free(mr);
        return NULL;
    }
    if (!ops->memory_register)
        mr->lkey = next_key(context);
    list_add(mr);
    return mr;
}

static void list_remove(struct sdr_mr *mr)
{
    struct sdr_context *context = mr->context;
    pthread_mutex_lock(&context->memory_lock);
    struct sdr_mr **at = list_of(context, mr->lkey);
    while (*at && *at != mr)
        at = &(*at)->next;
    if (*at) {
        *at = mr->next;
        context->memory_count--;
    }
    pthread_mutex_unlock(&context->memory_lock);
}

static void release(struct sdr_mr *mr)
{
    struct fabric *fabric = mr->context->fabric;
    if (fabric->ops->memory_deregister)
        fabric->ops->memory_deregister(fabric, mr->handle);
    free(mr);
}

void sdr_mr_drop(struct sdr_mr *mr)
{
    list_remove(mr);
    release(mr);
}

/* What of the context's QPs has this key in flight. */
static struct qp_memory_use uses_of(struct sdr_context *context, uint32_t lkey)
{
    struct qp_memory_use all = {0};
    pthread_mutex_lock(&context->lock);
    for (uint32_t i = 0; i < context->qp_count; i++) {
        struct qp_memory_use use = qp_memory_use(context->qps[i], lkey);
        all.receives += use.receives;
        all.sends += use.sends;
    }
    pthread_mutex_unlock(&context->lock);
    return all;
}

int sdr_mr_dereg(struct sdr_mr *mr)
{
    if (!mr)
        return SDR_SUCCESS;
    /* Off the list first: a post that runs beside this either is seen by uses_of(), or sees no key. */
    list_remove(mr);
    struct qp_memory_use use = uses_of(mr->context, mr->lkey);
    if (use.receives || use.sends) {
        list_add(mr);
        lh_fail(LH_ESTATE,
                "memory is in use: %u receives posted, %u sends queued (complete them, or destroy their "
                "QPs, first)",
                use.receives, use.sends);
        return SDR_ERROR;
    }
    release(mr);
    return SDR_SUCCESS;
}

int sdr_mr_lkey_get(struct sdr_mr *mr, uint32_t *lkey)
{
    *lkey = mr->lkey;
    return SDR_SUCCESS;
}

int sdr_mr_rkey_get(struct sdr_mr *mr, uint32_t *rkey)
{
    *rkey = mr->lkey;
    return SDR_SUCCESS;
}

bool memory_covers(struct sdr_context *context, uint32_t lkey, uint64_t address, uint64_t bytes)
{
    if (bytes == 0)
        return true;
    bool covered = false;
    pthread_mutex_lock(&context->memory_lock);
    for (const struct sdr_mr *mr = *list_of(context, lkey); mr && !covered; mr = mr->next)
        covered = mr->lkey == lkey && address >= mr->address && bytes <= mr->bytes &&
                  address - mr->address <= mr->bytes - bytes;
    pthread_mutex_unlock(&context->memory_lock);
    return covered;
}
