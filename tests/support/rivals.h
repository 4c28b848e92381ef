/*
 * rivals.h - what else is on a path: controllers that approximate the kernel's CUBIC and BBR (version 1).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef TESTS_SUPPORT_RIVALS_H
#define TESTS_SUPPORT_RIVALS_H

#include <longhaul/congestion.h>

/* RFC 9438, with slow start. */
extern const struct lh_congestion rival_cubic;
/* Cardwell et al., 2016: startup, drain, the cycle of eight gains, ProbeRTT. */
extern const struct lh_congestion rival_bbr1;

#endif
