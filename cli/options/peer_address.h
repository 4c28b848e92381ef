/*
 * listening.h - listening for connections.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_LISTENING_H
#define LH_CLI_OPTIONS_LISTENING_H

#include "cli/options/address.h"

#include <longhaul/connection.h>

/* Listens there and prints "listening on ADDR:PORT" on stdout. CLI_PROCEED, or an exit status after
 * reporting the cause. */
int cli_listening_start(const struct cli_address *address, const struct lh_attr *attr,
                        struct lh_listener **listener);

/* Reports that listening there failed with that code, and the remedy; returns the exit status. */
int cli_listening_failed(const struct cli_address *address, int code);

/* The next connection. While it waits, a signal ends the process at once. CLI_PROCEED; CLI_EXIT_FAILED, and
 * after reporting it; or the value of cli_stopped(). */
int cli_listening_accept(struct lh_listener *listener, lh_time timeout_ns,
                         struct lh_connection **connection);
/* The next connection, if one comes soon, else NULL; a signal only shows in cli_stopped(). CLI_PROCEED, or
 * CLI_EXIT_FAILED after reporting it. */
int cli_listening_look(struct lh_listener *listener, struct lh_connection **connection);

#endif
