/*
 * folders.h - the folders of a plan: one for each point of a sweep, one in that for each seed; and what
 * an earlier run left in them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_FOLDERS_H
#define LH_CLI_SIM_FOLDERS_H

#include "cli/results/folder.h"
#include "cli/sim/run/run.h"
#include "cli/sim/scenario/sweep.h"

/* Whether a run may write there: refuses a folder without our mark in which a file has the name of one of the
 * run's, also in folders that are named as those of points and seeds are ("senders=4", "seed-2"). "": nothing
 * is written. CLI_PROCEED, or reports the file. */
int cli_sim_folders_check(const struct cli_folder *top);
/* Marks the folder. In one that is marked, takes away what an earlier run wrote, in it and in those of points
 * and seeds: it would look like results of this one. Files of other names stay, and the folders that they are
 * in. CLI_PROCEED, or reports the cause. */
int cli_sim_folders_clear(const struct cli_folder *top);

/* Sets run->folder, and makes it: one of its own where there are several points, and one in it where there
 * are several seeds. CLI_PROCEED, or reports the cause. */
int cli_sim_folder_make(const struct cli_sim_plan *plan, const struct cli_folder *top,
                        struct cli_sim_run *run);
/* Of a run that did not end: takes it away where it is empty. */
void cli_sim_folder_drop(const struct cli_folder *top, const struct cli_sim_run *run);

#endif
