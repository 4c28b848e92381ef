/*
 * dcqcn_control.h - DCQCN (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015)
 * as a controller: the rate machine of dcqcn.h, driven by marks and notifications. Differences:
 * docs/congestion.md.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_DCQCN_CONTROL_H
#define LH_CONGESTION_DCQCN_CONTROL_H

#include <longhaul/congestion.h>

extern const struct lh_congestion dcqcn_congestion;

#endif
