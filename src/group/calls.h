/*
 * calls.h - starts what the calls of longhaul/collective.h describe.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_CALLS_H
#define LH_GROUP_CALLS_H

#include "group/operation.h"

/* Checks the request, and begins the operation. What lh_allreduce() returns. */
int calls_start(struct lh_group *group, const struct op_request *request, struct lh_collective **op);

#endif
