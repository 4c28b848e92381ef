/*
 * listening.h - waiting for somebody to connect.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_LISTENING_H
#define CLI_LISTENING_H

#include "address.h"

#include <longhaul/connection.h>

/* Listens there and prints "listening on ADDR:PORT" on stdout. CLI_PROCEED, or says why not: an exit
 * status. */
int cli_listening_start(const struct cli_address *address, const struct lh_attr *attr,
                        struct lh_listener **listener);

/* The next connection. While it waits, a signal ends the process at once. CLI_PROCEED; CLI_EXIT_FAILED, and
 * said why; or what cli_stopped() says. */
int cli_listening_accept(struct lh_listener *listener, lh_time timeout_ns,
                         struct lh_connection **connection);

#endif
