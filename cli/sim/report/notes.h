/*
 * notes.h - notes on the results, on stderr.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_REPORT_NOTES_H
#define LH_CLI_SIM_REPORT_NOTES_H

#include "cli/sim/report/results.h"
#include "cli/sim/scenario/sweep.h"

#include <stdbool.h>

/* Before the first run: what is asked for and not written, since there is no folder for it; more load than
 * cables carry. */
void cli_sim_notes_before(const struct cli_sim_plan *plan, bool has_folder);
/* Of results: retransmissions without loss; truncated captures. */
void cli_sim_notes_after(const struct cli_sim_results *results);

#endif
