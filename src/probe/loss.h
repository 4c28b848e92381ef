/*
 * loss.h - measures loss, reordering and duplication of each payload size.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_LOSS_H
#define LH_PROBE_LOSS_H

#include "probe/session.h"

/* Fills in its part of the result. 0, or the error that ends the probe. */
int probe_measure_loss(struct probe_session *session);

#endif
