/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/collective_call.h"

bool collective_call_reduces(enum collective collective)
{
    return collective == COLLECTIVE_ALLREDUCE || collective == COLLECTIVE_REDUCE ||
           collective == COLLECTIVE_REDUCE_SCATTER;
}

size_t collective_call_in(const struct collective_call *call, uint32_t size)
{
    bool whole = call->collective == COLLECTIVE_REDUCE_SCATTER || call->collective == COLLECTIVE_SCATTER ||
                 call->collective == COLLECTIVE_ALLTOALL;
    return whole ? call->count * size : call->count;
}

size_t collective_call_out(const struct collective_call *call, uint32_t size)
{
    bool whole = call->collective == COLLECTIVE_ALLGATHER || call->collective == COLLECTIVE_GATHER ||
                 call->collective == COLLECTIVE_ALLTOALL;
    return whole ? call->count * size : call->count;
}

int collective_call_start(struct lh_group *group, const struct collective_call *call, const void *in,
                          void *out, const struct lh_collective_options *options, struct lh_collective **op)
{
    const size_t count = call->count;
    const uint32_t root = call->root;
    const bool at_root = lh_group_rank(group) == root;
    switch (call->collective) {
    case COLLECTIVE_ALLREDUCE:
        return lh_allreduce(group, in, out, count, call->type, call->reduction, options, op);
    case COLLECTIVE_REDUCE:
        return lh_reduce(group, in, at_root ? out : NULL, count, call->type, call->reduction, root, options,
                         op);
    case COLLECTIVE_REDUCE_SCATTER:
        return lh_reduce_scatter(group, in, out, count, call->type, call->reduction, options, op);
    case COLLECTIVE_BROADCAST:
        return lh_broadcast(group, out, count, call->type, root, options, op);
    case COLLECTIVE_ALLGATHER:
        return lh_allgather(group, in, out, count, call->type, options, op);
    case COLLECTIVE_GATHER:
        return lh_gather(group, in, at_root ? out : NULL, count, call->type, root, options, op);
    case COLLECTIVE_SCATTER:
        return lh_scatter(group, at_root ? in : NULL, out, count, call->type, root, options, op);
    case COLLECTIVE_ALLTOALL:
        return lh_alltoall(group, in, out, count, call->type, options, op);
    default:
        return lh_barrier(group, options, op);
    }
}
