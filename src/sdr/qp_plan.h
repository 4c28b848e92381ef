/*
 * qp_plan.h - what a QP is created with, from the attributes of the SDK and of Longhaul. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_QP_PLAN_H
#define LH_SDR_QP_PLAN_H

#include <longhaul/sdr_ext.h>

#include "sdr/message_table.h"

struct qp_plan {
    struct message_shape shape;
    uint64_t rate_bps; /* 0: not paced */
    bool send_enable;
    bool recv_enable;
};

/* Fills in the defaults of fields that are zero. -LH_EINVAL, -LH_ERANGE */
int qp_plan_make(const struct sdr_qp_attr *attr, const struct lh_qp_attr *more, struct qp_plan *plan);

#endif
