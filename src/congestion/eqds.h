/*
 * eqds.h - credits from the receiver (Olteanu et al., "An edge-queued datagram service for all datacenter
 * traffic", NSDI 2022). Differences: docs/congestion.md.
 *
 * The receiver's half decides how much may be in flight. The sender's half sends what it has credits for, at
 * the pace at which they come, and bounds what a receiver can ask for by what has been delivered.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_EQDS_H
#define LH_CONGESTION_EQDS_H

#include <longhaul/congestion.h>

extern const struct lh_congestion eqds_congestion;

#endif
