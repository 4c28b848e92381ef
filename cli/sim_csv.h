/*
 * sim_csv.h - flows.csv and links.csv: what became of each flow and each link.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_SIM_CSV_H
#define CLI_SIM_CSV_H

#include "folder.h"

#include <longhaul/netsim.h>

/* CLI_PROCEED, or says what is wrong. */
int cli_csv_flows(const struct cli_folder *folder, const struct lh_netsim *simulation);
int cli_csv_links(const struct cli_folder *folder, const struct lh_netsim *simulation);

/* Picoseconds as seconds with all their digits, but no trailing zeros. */
void cli_csv_seconds(FILE *out, uint64_t ps);

#endif
