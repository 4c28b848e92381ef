/*
 * absent.c - the verbs fabric of a build without libibverbs: it says so.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/verbs/ops.h"

#include "base/error.h"

static int open_absent(const struct fabric_attr *attr, struct fabric **fabric)
{
    (void)fabric;
    return lh_fail(LH_EDEVICE,
                   "device \"verbs:%s\": verbs is not built in; install libibverbs-dev (rdma-core), "
                   "configure and build again",
                   attr->address);
}

const struct fabric_ops fabric_verbs_ops = {
    .name = "verbs",
    .open = open_absent,
};
