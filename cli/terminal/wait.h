/*
 * wait.h - waiting for a request, with a timeout and a check for signals.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_TERMINAL_WAIT_H
#define LH_CLI_TERMINAL_WAIT_H

#include <longhaul/connection.h>

/* Signals, progress bars and early answers are looked at this often. */
#define CLI_SLICE_NS (50 * LH_NS_PER_MS)

/* Monotonic. */
lh_time cli_now(void);
double cli_seconds(lh_time ns);

/* Waits until the request is done: 0, with *result. -LH_ETIMEDOUT after timeout_ns, -LH_ECANCELED
 * when a signal asked to stop; the request goes on then. */
int cli_wait(struct lh_request *request, lh_time timeout_ns, struct lh_result *result);

#endif
