/*
 * limit.h - what limited a measurement.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PERF_LIMIT_H
#define LH_CLI_PERF_LIMIT_H

#include "cli/perf/perf.h"

#define CLI_PERF_REMEDY_MAX 80

/* Bytes that can be in flight: a window, or what the slots hold of such messages, whichever is less. */
uint64_t cli_perf_in_flight_max(const struct cli_perf_result *result);
/* "window" where about as many bytes left in each round trip and the path takes more; NULL where nothing is
 * known to have limited it. */
const char *cli_perf_limited_by(const struct cli_perf_order *order, const struct cli_perf_result *result);
/* The options that would not limit it, with their values where the rate of the link is known. */
void cli_perf_remedy(const struct cli_perf_order *order, const struct cli_perf_result *result,
                     char out[CLI_PERF_REMEDY_MAX]);

#endif
