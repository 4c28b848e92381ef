/*
 * perf_limit.h - what limited a measurement.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_PERF_LIMIT_H
#define CLI_PERF_LIMIT_H

#include "perf.h"

/* "window" where about a window of bytes left in each round trip and the path takes more; NULL where nothing
 * is known to have limited it. */
const char *cli_perf_limited_by(const struct cli_perf_order *order, const struct cli_perf_result *result);
/* The window that would not: MiB, rounded up; 0 where the rate of the link is not known. */
uint64_t cli_perf_window_needed(const struct cli_perf_order *order, const struct cli_perf_result *result);

#endif
