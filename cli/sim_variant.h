/*
 * sim_variant.h - sections [variant NAME] of a scenario: settings that hold together where run.variant is
 * NAME, so that what differs in several keys can be compared in one sweep.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_SIM_VARIANT_H
#define CLI_SIM_VARIANT_H

#include "sim_plan.h"

#define CLI_VARIANT_KEY "run.variant"

/* The key that a setting of such a section is about; NULL: it stands in none. */
const char *cli_sim_variant_key(const struct cli_setting *setting);

/* Whether the setting stands in the section that holds at a point. */
bool cli_sim_variant_holds(const struct cli_sim_plan *plan, unsigned point,
                           const struct cli_setting *setting);

/* What that section says of a key; NULL: nothing, or the command line says something else. */
const struct cli_setting *cli_sim_variant_find(const struct cli_sim_plan *plan, unsigned point,
                                               const char *key);

/* With the axes known: each variant that is asked for has a section, and sections hold what may be in them.
 * CLI_PROCEED, or says what is wrong. */
int cli_sim_variant_check(const struct cli_sim_plan *plan);

#endif
