/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/gather.h"

#include "base/error.h"
#include "group/calls.h"

int gather_begin(struct lh_group *group, const void *mine, size_t bytes, void *all,
                 struct lh_collective **op)
{
    struct lh_collective_options options;
    lh_collective_options_init(&options);
    options.reliable = true;
    options.schedule = "bruck"; /* ranks may know different paths */
    const struct op_request request = {.collective = COLLECTIVE_ALLGATHER,
                                       .in = mine,
                                       .out = all,
                                       .count = bytes,
                                       .type = LH_U8,
                                       .needs_in = true,
                                       .needs_out = true,
                                       .by_rank = true,
                                       .options = &options};
    return calls_start(group, &request, op);
}

int gather_end(struct lh_collective *op, int waited)
{
    struct lh_collective_result result = {0};
    int error = waited;
    if (!error && lh_collective_test(op, &result) && result.error)
        error = lh_fail((enum lh_error) - result.error, "%s", result.message);
    lh_collective_free(op);
    return error;
}

int group_gather(struct lh_group *group, const void *mine, size_t bytes, void *all)
{
    struct lh_collective *op;
    int error = gather_begin(group, mine, bytes, all, &op);
    return error ? error : gather_end(op, lh_collective_wait(op, group->mesh->timeout_ns, NULL));
}
