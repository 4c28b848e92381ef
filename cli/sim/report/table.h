/*
 * table.h - the results of a simulation as tables on stdout.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_REPORT_TABLE_H
#define LH_CLI_SIM_REPORT_TABLE_H

#include "cli/sim/report/results.h"

void cli_sim_report(const struct cli_sim_results *results);

#endif
