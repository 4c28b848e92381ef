/*
 * Indirect keys of a build without mlx5dv: opening them fails with the reason.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/verbs/verbs_queue_pair.h"

#include "base/error.h"

bool verbs_indirect_possible(struct ibv_device *device)
{
    (void)device;
    return false;
}

int verbs_indirect_open(struct verbs_endpoint *endpoint)
{
    return lh_fail(
        LH_EDEVICE,
        "device %s: indirect keys are not built in (they need libmlx5 and infiniband/mlx5dv.h of "
        "libibverbs-dev, and LH_MLX5=ON); use protect=window or protect=mr",
        ibv_get_device_name(verbs_fabric_of(endpoint)->context->device));
}

/* Never called: none was opened. */
void verbs_indirect_close(struct verbs_indirect *indirect)
{
    (void)indirect;
}

int verbs_indirect_bind(struct verbs_indirect *indirect, uint32_t slot, const struct fabric_slot *what,
                        const struct ibv_mr *mr, struct fabric_slot_key *key)
{
    (void)indirect, (void)slot, (void)what, (void)mr, (void)key;
    return -LH_EDEVICE;
}

int verbs_indirect_unbind(struct verbs_indirect *indirect, uint32_t slot)
{
    (void)indirect, (void)slot;
    return -LH_EDEVICE;
}
