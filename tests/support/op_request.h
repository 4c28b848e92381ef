/*
 * op_request.h - the request of an operation over buffers that each rank has, for tests.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_OP_REQUEST_H
#define LH_TESTS_SUPPORT_OP_REQUEST_H

#include "group/operation_state.h"

/* A sum, where the collective has a reduction. */
static inline struct op_request op_request_of(enum collective collective, const void *in, void *out,
                                              enum lh_type type, size_t count)
{
    return (struct op_request){.collective = collective,
                               .in = in,
                               .out = out,
                               .count = count,
                               .type = type,
                               .reduces = collective == COLLECTIVE_ALLREDUCE,
                               .needs_in = true,
                               .needs_out = true};
}

#endif
