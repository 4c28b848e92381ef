/*
 * ranks.h - the ranks of a job, from their start to the end of the last one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RUN_RANKS_H
#define LH_CLI_RUN_RANKS_H

#include "cli/run/variables.h"

#include <stdbool.h>

/* Runs them; sets port and secret of the job. When one fails, or a signal comes, the others are ended:
 * SIGTERM, or that signal, and SIGKILL CLI_RUN_GRACE_S later. Returns the exit status: that of the first rank
 * that failed, or as of the signal. One that a signal ends up to CLI_RUN_CAUSE_NS later is the first. */
int cli_run_ranks(struct cli_run_job *job, char **command, bool label);
#define CLI_RUN_GRACE_S  5
#define CLI_RUN_CAUSE_NS LH_NS_PER_S

#endif
