/*
 * sim_unread.h - keys that are set or swept, and that no simulation of the plan reads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_SIM_UNREAD_H
#define CLI_SIM_UNREAD_H

#include "sim_plan.h"

/* Notes a key that is set and that nothing reads, at no point; refuses one that is swept so: all its points
 * would be the same. CLI_PROCEED, or says what is wrong. */
int cli_sim_check_unread(const struct cli_sim_plan *plan);

#endif
