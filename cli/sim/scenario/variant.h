/*
 * variant.h - sections [variant NAME] of a scenario: settings that hold together where run.variant is
 * NAME, so that what differs in several keys can be compared in one sweep.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_SCENARIO_VARIANT_H
#define LH_CLI_SIM_SCENARIO_VARIANT_H

#include "cli/sim/scenario/scenario.h"
#include "cli/sim/scenario/sweep.h"

/* The key that a setting of such a section is about; NULL: it is in none. */
const char *cli_sim_variant_key(const struct cli_setting *setting);

/* Whether the setting is in the section that applies at a point. */
bool cli_sim_variant_holds(const struct cli_sim_plan *plan, unsigned point,
                           const struct cli_setting *setting);

/* The setting of a key in that section; NULL: none, or overridden by the command line. */
const struct cli_setting *cli_sim_variant_find(const struct cli_sim_plan *plan, unsigned point,
                                               const char *key);

/* With the axes known: each variant that is asked for has a section, and sections hold what may be in them.
 * CLI_PROCEED, or reports the cause. */
int cli_sim_variant_check(const struct cli_sim_plan *plan);

#endif
