/*
 * operation_create.h - makes operations, and gives back their memory; op_create() is in operation.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_OPERATION_CREATE_H
#define LH_GROUP_OPERATION_CREATE_H

#include "group/operation.h"

/* What only passes through is not needed any more. */
void op_give_work(struct lh_collective *op);

#endif
