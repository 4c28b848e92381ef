/*
 * rtt.h - measures round trips of small packets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_RTT_H
#define LH_PROBE_RTT_H

#include "probe/session.h"

/* Fills in its part of the result. 0, or the error that ends the probe. */
int probe_measure_rtt(struct probe_session *session);

#endif
