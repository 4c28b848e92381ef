/*
 * mtu.h - measures the path's MTU, and the RoCE MTU that fits it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_MTU_H
#define LH_PROBE_MTU_H

#include "probe/session.h"

/* Fills in its part of the result. 0, or the error that ends the probe. */
int probe_measure_mtu(struct probe_session *session);

#endif
