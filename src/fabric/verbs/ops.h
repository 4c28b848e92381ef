/*
 * ops.h - the verbs fabric as the registry of fabrics knows it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_OPS_H
#define LH_FABRIC_VERBS_OPS_H

#include "fabric/fabric.h"

/* In every build; without libibverbs its open fails with the reason (absent.c). */
extern const struct fabric_ops fabric_verbs_ops;

#endif
