/*
 * verbs_absent.c - the verbs fabric of a build without libibverbs: its open fails with the reason.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/verbs/verbs_parts.h"

#include <stdio.h>

#include "base/error.h"
#include "fabric/fabric.h"

#define ABSENT "verbs is not built in; install libibverbs-dev (rdma-core), configure and build again"

static int open_absent(const struct fabric_attr *attr, struct fabric **fabric)
{
    (void)fabric;
    return lh_fail(LH_EDEVICE, "device \"verbs:%s\": " ABSENT, attr->address);
}

static int list_absent(struct fabric_device_list *list)
{
    struct lh_device *device = fabric_device_add(list, fabric_verbs_ops.name);
    if (device != NULL)
        snprintf(device->trouble, sizeof device->trouble, ABSENT);
    return 0;
}

const struct fabric_ops fabric_verbs_ops = {
    .name = "verbs",
    .devices = list_absent,
    .open = open_absent,
};
