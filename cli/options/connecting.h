/*
 * connecting.h - connecting to a listener.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_OPTIONS_CONNECTING_H
#define LH_CLI_OPTIONS_CONNECTING_H

#include "cli/options/address.h"

#include <longhaul/connection.h>

/* Connects. wait_ns: timeout; 0: the default, extended while the peer reports that it is busy (reported
 * once). attr->path_file: as --path-file gives it. several: what lets the peer serve more than one client,
 * for the message when it has closed. CLI_PROCEED, or an exit status after reporting the cause. */
int cli_connect(const struct cli_address *address, const struct lh_attr *attr, lh_time wait_ns,
                const char *several, struct lh_connection **connection);

#endif
