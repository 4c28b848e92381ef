/*
 * pace.h - what the keys of congestion control mean for the machine that does it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_PACE_H
#define LH_NETSIM_PACE_H

#include "congestion/dcqcn.h"
#include "netsim/config.h"

/* In nanoseconds, as dcqcn.h wants it; what is left of a nanosecond is cut off. */
struct dcqcn_config netsim_pace_dcqcn(const struct netsim_dcqcn_config *config);

#endif
