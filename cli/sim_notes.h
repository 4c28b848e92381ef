/*
 * sim_notes.h - what whoever reads the results should know besides, on stderr.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_SIM_NOTES_H
#define CLI_SIM_NOTES_H

#include "sim_results.h"

#include <stdbool.h>

/* Before the first run: what is asked for and not written, since there is no folder for it; more load than
 * cables carry. */
void cli_sim_notes_before(const struct cli_sim_plan *plan, bool has_folder);
/* Of results: packets that were sent again although none was lost; that captures are not whole. */
void cli_sim_notes_after(const struct cli_sim_results *results);

#endif
