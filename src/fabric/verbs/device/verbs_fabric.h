/*
 * verbs_fabric.h - an open device: what all endpoints on it share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_VERBS_FABRIC_H
#define LH_FABRIC_VERBS_VERBS_FABRIC_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

#include "fabric/fabric.h"
#include "fabric/verbs/device/memory.h"
#include "fabric/verbs/pure/name.h"

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

#endif
