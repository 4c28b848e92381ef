/*
 * bbr.h - a model of the path, its bandwidth and shortest round trip, and sending by that model: after
 * draft-ietf-ccwg-bbr (version 3), with the deviations of docs/congestion.md.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_BBR_H
#define LH_CONGESTION_BBR_H

#include <longhaul/congestion.h>

extern const struct lh_congestion bbr_congestion;

#endif
