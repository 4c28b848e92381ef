/*
 * unused_keys.h - keys that are set or swept, and that no simulation of the plan reads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_SCENARIO_UNUSED_KEYS_H
#define LH_CLI_SIM_SCENARIO_UNUSED_KEYS_H

#include "cli/sim/scenario/sweep.h"

/* Notes a key that is set and that nothing reads, at no point; refuses one that is swept so: all its points
 * would be the same. CLI_PROCEED, or reports the cause. */
int cli_sim_check_unused(const struct cli_sim_plan *plan);

#endif
