/*
 * control.h - one message of message.h to or from the peer; and waiting that notices a
 * standstill.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PERF_CONTROL_H
#define LH_CLI_PERF_CONTROL_H

#include "cli/perf/message.h"

#include <longhaul/connection.h>

/* For a peer that lives and does nothing. */
#define CLI_PERF_TIMEOUT_NS (60 * LH_NS_PER_S)

/* Until the peer has it. 0 or a negative lh_error; -LH_ECANCELED: stopped by a signal. */
int cli_perf_send(struct lh_connection *control, const struct cli_perf_message *message);
/* The next message, of that kind. The same errors. */
int cli_perf_receive(struct lh_connection *control, enum cli_perf_kind kind, lh_time timeout_ns,
                     struct cli_perf_message *message);

/* Waits for a request for as long as packets still move on its connection. 0: done, and the result may hold
 * an error; -LH_ETIMEDOUT after CLI_PERF_TIMEOUT_NS without any; -LH_ECANCELED: stopped by a signal. */
int cli_perf_wait(struct lh_connection *connection, struct lh_request *request, struct lh_result *result);

#endif
