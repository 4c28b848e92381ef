/*
 * report.h - what longhaul probe measured: as a table, in words, and as JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PROBE_REPORT_H
#define LH_CLI_PROBE_REPORT_H

#include <longhaul/probe.h>

#include <stdio.h>

/* The table and the verdict. */
void cli_probe_report(FILE *out, const char *host, const struct lh_probe_attr *attr,
                      const struct lh_probe_result *result);

#endif
