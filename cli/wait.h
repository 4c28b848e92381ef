/*
 * wait.h - waiting for a request with an end to the patience and an eye on signals.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_WAIT_H
#define CLI_WAIT_H

#include <longhaul/connection.h>

/* Signals, progress bars and early answers are looked at this often. */
#define CLI_SLICE_NS (50 * LH_NS_PER_MS)

/* Monotonic. */
lh_time cli_now(void);
double cli_seconds(lh_time ns);

/* Waits until the request is done: 0, and *result says how. -LH_ETIMEDOUT after patience_ns, -LH_ECANCELED
 * when a signal asked to stop; the request goes on then. */
int cli_wait(struct lh_request *request, lh_time patience_ns, struct lh_result *result);

#endif
