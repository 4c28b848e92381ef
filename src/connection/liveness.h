/*
 * liveness.h - is the peer there? Its goodbye, its silence, the end of its process.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONNECTION_LIVENESS_H
#define LH_CONNECTION_LIVENESS_H

#include "connection/connection.h"

void liveness_start(struct lh_connection *c, lh_time now);
/* Ends the connection when the peer is gone. Cheap: called in each step. */
void liveness_step(struct lh_connection *c, lh_time now, lh_time *next);

#endif
