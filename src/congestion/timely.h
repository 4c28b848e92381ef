/*
 * timely.h - congestion control by the delay's gradient (Mittal et al., "TIMELY: RTT-based Congestion Control
 * for the Datacenter", SIGCOMM 2015). Differences: docs/congestion.md.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_TIMELY_H
#define LH_CONGESTION_TIMELY_H

#include <longhaul/congestion.h>

extern const struct lh_congestion timely_congestion;

#endif
