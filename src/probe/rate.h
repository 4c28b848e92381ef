/*
 * rate.h - measures the rate that the path delivers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_RATE_H
#define LH_PROBE_RATE_H

#include "probe/session.h"

/* Fills in its part of the result. 0, or the error that ends the probe. */
int probe_measure_rate(struct probe_session *session);

#endif
