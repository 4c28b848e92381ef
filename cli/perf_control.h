/*
 * perf_control.h - one message of perf_message.h to or from the other side; and waiting that notices a
 * standstill.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_PERF_CONTROL_H
#define CLI_PERF_CONTROL_H

#include "perf_message.h"

#include <longhaul/connection.h>

/* For a peer that lives and does nothing. */
#define CLI_PERF_PATIENCE_NS (60 * LH_NS_PER_S)

/* Until the other side has it. 0 or a negative lh_error; -LH_ECANCELED: stopped by a signal. */
int cli_perf_tell(struct lh_connection *control, const struct cli_perf_message *message);
/* The next message, of that kind. The same errors. */
int cli_perf_hear(struct lh_connection *control, enum cli_perf_kind kind, lh_time patience_ns,
                  struct cli_perf_message *message);

/* Waits for a request for as long as packets still move on its connection. 0: done, and the result may hold
 * an error; -LH_ETIMEDOUT after CLI_PERF_PATIENCE_NS without any; -LH_ECANCELED: stopped by a signal. */
int cli_perf_wait(struct lh_connection *connection, struct lh_request *request, struct lh_result *result);

#endif
