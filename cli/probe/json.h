/*
 * json.h - what longhaul probe measured, as JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PROBE_JSON_H
#define LH_CLI_PROBE_JSON_H

#include <longhaul/probe.h>

#include <stdio.h>

/* One object; longhaul-probe(1) lists the members. */
void cli_probe_report_json(FILE *out, const char *host, const struct lh_probe_attr *attr,
                           const struct lh_probe_result *result);

#endif
