/*
 * report.h - results of longhaul perf as a table and as JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PERF_REPORT_H
#define LH_CLI_PERF_REPORT_H

#include "cli/perf/perf.h"

/* What holds for all rows, and the titles of the columns. */
void cli_perf_report_titles(const struct cli_perf_order *order, const struct cli_perf_result *result);
void cli_perf_report_row(const struct cli_perf_order *order, const struct cli_perf_result *result);

/* Into order->json: one object for one size, an array of objects for a sweep. CLI_PROCEED or
 * CLI_EXIT_FAILED. */
int cli_perf_report_json(const struct cli_perf_order *order, const struct cli_perf_result *results);

#endif
