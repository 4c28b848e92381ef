/*
 * verbs_device.h - devices of the verbs fabric: names, ports, addresses, registered memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_VERBS_DEVICE_H
#define LH_FABRIC_VERBS_VERBS_DEVICE_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fabric/fabric.h"
#include "fabric/verbs/verbs_sizes.h"

/* ---- memory ---------------------------------------------------------------------------------------- */

/* Memory that is registered with the device, found again by its lkey. */

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

/* ---- verbs fabric ---------------------------------------------------------------------------------- */

/* An open device: what all endpoints on it share. */

#define VERBS_REASON_MAX 160u

struct verbs_fabric {
    struct fabric base;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_device_attr device;
    struct verbs_name name;
    uint8_t port;
    uint8_t gid_index;
    enum ibv_mtu path_mtu; /* what one packet takes */
    uint32_t mtu_bytes;    /* the same in bytes */
    union ibv_gid gid;
    struct verbs_memory memory;
    _Atomic bool gone; /* the device or its port; nothing can be sent any more */
    char reason[VERBS_REASON_MAX];
    pthread_mutex_t lock; /* of reason while gone is false, and of reading events of the device */
    char warning[VERBS_REASON_MAX];
};

/* ---- device ---------------------------------------------------------------------------------------- */

#define VERBS_GIDS_MAX 256u /* entries of a port's table that are read */
#define VERBS_NO_DEVICE                                                                                    \
    "this machine has no RDMA device (udp:ADDRESS needs none); with a NIC, load its driver and install "   \
    "ibverbs-providers; without, "                                                                         \
    "\"modprobe rdma_rxe; rdma link add rxe0 type rxe netdev IFACE\" makes one in software"

/* Opens the device, port and GID that fabric->name asks for. -LH_EDEVICE names the candidates. */
int verbs_device_open(struct verbs_fabric *fabric);
uint32_t verbs_mtu_bytes(enum ibv_mtu mtu);
/* The port's addresses, at most VERBS_GIDS_MAX; returns their number. */
uint32_t verbs_device_gids(struct ibv_context *context, uint8_t port, struct verbs_gid *gids);

#endif
