/*
 * dry_run.h - whether every run of a plan can begin, before the first one does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_SCENARIO_DRY_RUN_H
#define LH_CLI_SIM_SCENARIO_DRY_RUN_H

#include "cli/sim/scenario/sweep.h"

/* Makes the simulation of each point of a sweep, with its files, and looks for the links that are asked
 * for: what is wrong with the last point must not show after an hour of the others. CLI_PROCEED, or
 * reports the cause. */
int cli_sim_dry_run(const struct cli_sim_plan *plan);

/* Whether the links that are asked for are there. CLI_PROCEED, or reports the cause. */
int cli_sim_check_links(const struct cli_sim_plan *plan, unsigned point,
                        const struct lh_netsim *simulation);

#endif
