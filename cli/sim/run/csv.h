/*
 * csv.h - flows.csv and links.csv: the result of each flow and each link.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_RUN_CSV_H
#define LH_CLI_SIM_RUN_CSV_H

#include "cli/results/folder.h"

#include <longhaul/netsim.h>

/* CLI_PROCEED, or reports the cause. */
int cli_csv_flows(const struct cli_folder *folder, const struct lh_netsim *simulation);
int cli_csv_links(const struct cli_folder *folder, const struct lh_netsim *simulation);

/* Picoseconds as seconds with all their digits, but no trailing zeros. */
void cli_csv_seconds(FILE *out, uint64_t ps);

#endif
