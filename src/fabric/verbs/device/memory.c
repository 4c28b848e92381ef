/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/verbs/device/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void verbs_memory_open(struct verbs_memory *memory, struct ibv_pd *pd, bool windows)
{
    pthread_mutex_init(&memory->lock, NULL);
    memory->pd = pd;
    memory->windows = windows;
}

void verbs_memory_close(struct verbs_memory *memory)
{
    for (uint32_t i = 0; i < VERBS_MEMORY_BUCKETS; i++)
        while (memory->buckets[i] != NULL)
            verbs_memory_remove(memory, memory->buckets[i]);
    pthread_mutex_destroy(&memory->lock);
}

static struct verbs_region **bucket_of(struct verbs_memory *memory, uint32_t lkey)
{
    /* Keys differ in their upper bits, and some devices count in the lowest byte. */
    return &memory->buckets[(lkey ^ lkey >> 8) & (VERBS_MEMORY_BUCKETS - 1)];
}

/* Nobody may write by the region's own key: packets come in through a window or a registration of their
 * receive's own. */
static struct ibv_mr *register_region(const struct verbs_memory *memory, void *address, size_t bytes,
                                      bool *writable)
{
    unsigned access = IBV_ACCESS_LOCAL_WRITE | (memory->windows ? IBV_ACCESS_MW_BIND : 0u);
    struct ibv_mr *mr = ibv_reg_mr(memory->pd, address, bytes, access);
    *writable = mr != NULL;
    if (mr == NULL && (errno == EFAULT || errno == EACCES || errno == EPERM))
        mr = ibv_reg_mr(memory->pd, address, bytes, 0);
    return mr;
}

static int fail_register(const void *address, size_t bytes, int error)
{
    if (error == ENOMEM)
        return lh_fail(LH_ENOMEM,
                       "the device cannot hold %zu bytes at %p in memory: raise the limit of locked "
                       "memory (ulimit -l unlimited)",
                       bytes, address);
    if (error == EFAULT)
        return lh_fail(LH_EKEY, "%zu bytes at %p: not fully mapped", bytes, address);
    return lh_fail(LH_EDEVICE, "the device cannot register %zu bytes at %p: %s", bytes, address,
                   strerror(error));
}

int verbs_memory_add(struct verbs_memory *memory, void *address, size_t bytes, struct verbs_region **out)
{
    struct verbs_region *region = calloc(1, sizeof *region);
    if (region == NULL)
        return lh_fail(LH_ENOMEM, "no memory for a registration");
    if (bytes > 0) {
        region->mr = register_region(memory, address, bytes, &region->writable);
        if (region->mr == NULL) {
            int error = errno;
            free(region);
            return fail_register(address, bytes, error);
        }
    }
    pthread_mutex_lock(&memory->lock);
    struct verbs_region **bucket = bucket_of(memory, region->mr != NULL ? region->mr->lkey : 0);
    region->next = *bucket;
    *bucket = region;
    pthread_mutex_unlock(&memory->lock);
    *out = region;
    return 0;
}

void verbs_memory_remove(struct verbs_memory *memory, struct verbs_region *region)
{
    pthread_mutex_lock(&memory->lock);
    struct verbs_region **at = bucket_of(memory, region->mr != NULL ? region->mr->lkey : 0);
    while (*at != NULL && *at != region)
        at = &(*at)->next;
    if (*at != NULL)
        *at = region->next;
    pthread_mutex_unlock(&memory->lock);
    /* It fails only while a receive is posted there, against the rules; then the process keeps it. */
    if (region->mr != NULL)
        ibv_dereg_mr(region->mr);
    free(region);
}

const struct verbs_region *verbs_memory_find(struct verbs_memory *memory, uint32_t lkey)
{
    pthread_mutex_lock(&memory->lock);
    const struct verbs_region *region = *bucket_of(memory, lkey);
    while (region != NULL && (region->mr == NULL || region->mr->lkey != lkey))
        region = region->next;
    pthread_mutex_unlock(&memory->lock);
    return region;
}
