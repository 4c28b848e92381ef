/*
 * swift.h - congestion control by delay (Kumar et al., "Swift: Delay is Simple and Effective for Congestion
 * Control in the Datacenter", SIGCOMM 2020). Differences: docs/congestion.md.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_SWIFT_H
#define LH_CONGESTION_SWIFT_H

#include <longhaul/congestion.h>

extern const struct lh_congestion swift_congestion;

#endif
