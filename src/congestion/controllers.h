/*
 * controllers.h - the controllers bbr, fixed, swift and timely.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_CONTROLLERS_H
#define LH_CONGESTION_CONTROLLERS_H

#include <longhaul/congestion.h>

extern const struct lh_congestion bbr_congestion;

/* ---- fixed ----------------------------------------------------------------------------------------- */

/* No control: the rate that was told, for a circuit of its own. */

extern const struct lh_congestion fixed_congestion;

/* ---- swift ----------------------------------------------------------------------------------------- */

/*
 * Congestion control by delay (Kumar et al., "Swift: Delay is Simple and Effective for Congestion
 * Control in the Datacenter", SIGCOMM 2020). Differences: docs/congestion.md.
 */

extern const struct lh_congestion swift_congestion;

/* ---- timely ---------------------------------------------------------------------------------------- */

/*
 * Congestion control by the delay's gradient (Mittal et al., "TIMELY: RTT-based Congestion Control
 * for the Datacenter", SIGCOMM 2015). Differences: docs/congestion.md.
 */

extern const struct lh_congestion timely_congestion;

#endif
