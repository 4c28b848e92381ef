/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/schedules.h"

#include <assert.h>
#include <string.h>

const struct schedule *const *schedule_table(void)
{
    static const struct schedule *const all[] = {
        &ring_allreduce,
        &halving_doubling,
        &bruck_allreduce,
        &direct_allreduce,
        &bcube_allreduce,
        &tree_allreduce,
        &hierarchical_allreduce,
        &ring_reduce_scatter,
        &bruck_reduce_scatter,
        &bcube_reduce_scatter,
        &ring_allgather,
        &bruck_allgather,
        &bcube_allgather,
        &pairwise_alltoall,
        &bruck_alltoall,
        &transpose_alltoall,
        &pipeline_broadcast,
        &pipeline_reduce,
        &binomial_broadcast,
        &chain_broadcast,
        &sequential_broadcast,
        &tree_broadcast,
        &hybrid_broadcast,
        &binomial_reduce,
        &chain_reduce,
        &sequential_reduce,
        &tree_reduce,
        &hybrid_reduce,
        &binomial_scatter,
        &sequential_scatter,
        &binomial_gather,
        &sequential_gather,
        &dissemination_barrier,
        NULL,
    };
    return all;
}

const char *collective_name(enum collective collective)
{
    static const char *const names[] = {
        [COLLECTIVE_BROADCAST] = "broadcast", [COLLECTIVE_REDUCE] = "reduce",
        [COLLECTIVE_ALLREDUCE] = "allreduce", [COLLECTIVE_REDUCE_SCATTER] = "reduce-scatter",
        [COLLECTIVE_ALLGATHER] = "allgather", [COLLECTIVE_GATHER] = "gather",
        [COLLECTIVE_SCATTER] = "scatter",     [COLLECTIVE_ALLTOALL] = "alltoall",
        [COLLECTIVE_BARRIER] = "barrier",
    };
    assert(collective < COLLECTIVES);
    return names[collective];
}

const struct schedule *schedule_find(enum collective collective, const char *name)
{
    for (const struct schedule *const *s = schedule_table(); *s; s++)
        if ((*s)->collective == collective && (!name || strcmp((*s)->name, name) == 0))
            return *s;
    return NULL;
}
