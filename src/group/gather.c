/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/gather.h"

#include "base/error.h"

int group_gather(struct lh_group *group, const void *mine, size_t bytes, void *all)
{
    struct lh_collective *op;
    struct lh_collective_result result = {0};
    int error = lh_allgather(group, mine, all, bytes, LH_U8, NULL, &op);
    if (error)
        return error;
    error = lh_collective_wait(op, group->mesh->timeout_ns, &result);
    lh_collective_free(op);
    if (!error && result.error)
        error = lh_fail((enum lh_error) - result.error, "%s", result.message);
    return error;
}
