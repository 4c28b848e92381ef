/*
 * client.h - the measuring side of longhaul perf.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PERF_CLIENT_H
#define LH_CLI_PERF_CLIENT_H

#include "cli/perf/perf.h"

/* Measures one size after the other against the server; returns the exit status. */
int cli_perf_client(const struct cli_perf_order *order);

#endif
