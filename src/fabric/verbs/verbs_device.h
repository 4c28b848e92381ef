/*
 * memory.h - memory that is registered with the device, found again by its lkey.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_MEMORY_H
#define LH_FABRIC_VERBS_MEMORY_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>

#define VERBS_MEMORY_BUCKETS 256u /* a power of two */

struct verbs_region {
    struct ibv_mr *mr; /* NULL: an empty range, which the device need not know */
    bool writable;     /* packets may land in it */
    struct verbs_region *next;
};

struct verbs_memory {
    pthread_mutex_t lock;
    bool windows; /* regions are registered so that windows can be bound to them */
    struct ibv_pd *pd;
    struct verbs_region *buckets[VERBS_MEMORY_BUCKETS];
};

void verbs_memory_open(struct verbs_memory *memory, struct ibv_pd *pd, bool windows);
void verbs_memory_close(struct verbs_memory *memory);
/* Memory that cannot be written is registered for sending only. -LH_ENOMEM: more than may be locked;
 * -LH_EKEY: not mapped; -LH_EDEVICE. */
int verbs_memory_add(struct verbs_memory *memory, void *address, size_t bytes,
                     struct verbs_region **region);
void verbs_memory_remove(struct verbs_memory *memory, struct verbs_region *region);
/* NULL: no such key. Valid until it is removed. */
const struct verbs_region *verbs_memory_find(struct verbs_memory *memory, uint32_t lkey);

#endif
