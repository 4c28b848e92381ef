/*
 * step.h - what a connection does in each round of the SDR layer's control worker.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONNECTION_STEP_H
#define LH_CONNECTION_STEP_H

#include "connection/connection.h"

/* The driver (sdr/driver.h). Takes the lock. */
lh_time connection_step(void *connection, lh_time now);
/* A message of the peer's connection. Under the lock. */
void step_on_message(struct lh_connection *c, const uint8_t *data, size_t bytes, lh_time now);

#endif
