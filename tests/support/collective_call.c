/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/collective_call.h"

bool collective_call_reduces(enum collective collective)
{
    return collective == COLLECTIVE_ALLREDUCE || collective == COLLECTIVE_REDUCE ||
           collective == COLLECTIVE_REDUCE_SCATTER;
}

bool collective_call_may_be_uneven(enum collective collective)
{
    return collective == COLLECTIVE_GATHER || collective == COLLECTIVE_SCATTER ||
           collective == COLLECTIVE_ALLTOALL;
}

size_t collective_call_part(const struct collective_call *call, uint32_t source, uint32_t destination)
{
    return call->uneven ? call->count * ((source + 2 * destination + 1) % 3) : call->count;
}

size_t collective_call_before(const struct collective_call *call, uint32_t source, uint32_t destination)
{
    size_t sum = 0;
    for (uint32_t r = 0; r < destination; r++)
        sum += collective_call_part(call, source, r);
    return sum;
}

size_t collective_call_behind(const struct collective_call *call, uint32_t source, uint32_t destination)
{
    size_t sum = 0;
    for (uint32_t r = 0; r < source; r++)
        sum += collective_call_part(call, r, destination);
    return sum;
}

size_t collective_call_in(const struct collective_call *call, uint32_t size, uint32_t rank)
{
    switch (call->collective) {
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_ALLTOALL:
        return collective_call_before(call, rank, size);
    case COLLECTIVE_SCATTER:
        return collective_call_before(call, call->root, size);
    case COLLECTIVE_GATHER:
        return collective_call_part(call, rank, call->root);
    default:
        return call->count;
    }
}

size_t collective_call_out(const struct collective_call *call, uint32_t size, uint32_t rank)
{
    switch (call->collective) {
    case COLLECTIVE_ALLGATHER:
    case COLLECTIVE_ALLTOALL:
        return collective_call_behind(call, size, rank);
    case COLLECTIVE_GATHER:
        return collective_call_behind(call, size, call->root);
    case COLLECTIVE_SCATTER:
        return collective_call_part(call, call->root, rank);
    default:
        return call->count;
    }
}

/* A v-variant. */
static int start_uneven(struct lh_group *group, const struct collective_call *call, const void *in,
                        void *out, const struct lh_collective_options *options, struct lh_collective **op)
{
    const uint32_t rank = lh_group_rank(group), size = lh_group_size(group), root = call->root;
    const bool at_root = rank == root;
    size_t ins[LH_GROUP_RANKS_MAX], outs[LH_GROUP_RANKS_MAX];
    for (uint32_t r = 0; r < size; r++) {
        ins[r] = collective_call_part(call, rank, r);
        outs[r] = collective_call_part(call, r, rank);
    }
    if (call->collective == COLLECTIVE_GATHER)
        return lh_gatherv(group, in, ins[root], at_root ? out : NULL, at_root ? outs : NULL, call->type,
                          root, options, op);
    if (call->collective == COLLECTIVE_SCATTER)
        return lh_scatterv(group, at_root ? in : NULL, at_root ? ins : NULL, out, outs[root], call->type,
                           root, options, op);
    return lh_alltoallv(group, in, ins, out, outs, call->type, options, op);
}

int collective_call_start(struct lh_group *group, const struct collective_call *call, const void *in,
                          void *out, const struct lh_collective_options *options, struct lh_collective **op)
{
    const size_t count = call->count;
    const uint32_t root = call->root;
    const bool at_root = lh_group_rank(group) == root;
    if (call->uneven)
        return start_uneven(group, call, in, out, options, op);
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
