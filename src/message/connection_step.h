/*
 * connection_step.h - what a connection does in each round of the SDR layer's control worker.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_CONNECTION_STEP_H
#define LH_MESSAGE_CONNECTION_STEP_H

#include <longhaul/types.h>

/* The driver (sdr/sdr_driver.h). Takes the lock. */
lh_time connection_step(void *connection, lh_time now);

#endif
