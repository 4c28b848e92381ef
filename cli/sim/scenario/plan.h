/*
 * plan.h - what is to be simulated: a scenario, and for each value that it sweeps a point.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_SCENARIO_PLAN_H
#define LH_CLI_SIM_SCENARIO_PLAN_H

#include "cli/sim/scenario/scenario.h"
#include "cli/sim/scenario/sweep.h"

#include <longhaul/netsim.h>

#include <limits.h>
#include <stdbool.h>

/* After the scenario is complete: reads what is the command's, and what is swept. CLI_PROCEED, or reports
 * the cause. */
int cli_sim_plan_make(struct cli_sim_plan *plan);

/* The simulation of one point, to be destroyed by the caller. CLI_PROCEED, or reports the cause. */
int cli_sim_plan_create(const struct cli_sim_plan *plan, unsigned point, uint64_t seed,
                        struct lh_netsim **simulation);

/* The configuration of one point, with the files it names, to be destroyed by the caller. CLI_PROCEED, or
 * reports the cause. */
int cli_sim_plan_config(const struct cli_sim_plan *plan, unsigned point, struct lh_netsim_config **config);

/* Whether it sets a key of the library, at all points. */
bool cli_sim_plan_is_plain(const struct cli_setting *setting);

/* What a key of the library is at a point: by the sweep, the scenario, or by default. "" when there is
 * no such key, or no value. */
const char *cli_sim_plan_text(const struct cli_sim_plan *plan, unsigned point, const char *key);

#endif
