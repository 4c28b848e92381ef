/*
 * fixed.h - no control: the rate that was told, for a circuit of its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_FIXED_H
#define LH_CONGESTION_FIXED_H

#include <longhaul/congestion.h>

extern const struct lh_congestion fixed_congestion;

#endif
