/*
 * meeting.h - where the ranks of a job meet, and the secret by which they know each other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RUN_MEETING_H
#define LH_CLI_RUN_MEETING_H

#include "cli/run/variables.h"

/* Sets the job's port and secret. CLI_PROCEED, and a descriptor to keep open while the ranks run; or
 * CLI_EXIT_FAILED. */
int cli_meeting_choose(struct cli_run_job *job, int *fd);

#endif
