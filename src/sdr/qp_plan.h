/*
 * qp_plan.h - what a QP is created with, from the attributes of the SDK and of Longhaul. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_QP_PLAN_H
#define LH_SDR_QP_PLAN_H

#include <longhaul/sdr_ext.h>

#include "congestion/congestion_table.h"
#include "sdr/message_table.h"

struct qp_plan {
    struct message_shape shape;
    const char *congestion; /* as asked for; NULL: the default */
    uint64_t rate_bps;      /* told; 0: not */
    uint64_t rate_max_bps;  /* LH_RATE_NONE: no bound */
    uint64_t window_bytes;  /* in flight at most */
    bool send_enable;
    bool recv_enable;
};

/* Fills in the defaults of fields that are zero. -LH_EINVAL, -LH_ERANGE */
int qp_plan_make(const struct sdr_qp_attr *attr, const struct lh_qp_attr *more, struct qp_plan *plan);
/* The controller: what was asked for, else `fixed` where the path is told or pushes back by itself, else bbr.
 * -LH_EINVAL */
int qp_plan_congestion(const struct qp_plan *plan, bool told, struct congestion_choice *choice);

#endif
