/*
 * perf_server.h - the receiving side of longhaul perf.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PERF_PERF_SERVER_H
#define LH_CLI_PERF_PERF_SERVER_H

#include "cli/options/peer_address.h"

#include <longhaul/connection.h>

/* Serves one client after the other until stopped, or one only. */
int cli_perf_server(const struct cli_address *address, const struct lh_attr *attr, bool once);

#endif
