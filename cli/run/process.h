/*
 * process.h - a rank's process, in a process group of its own, and the pipes of its output.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RUN_PROCESS_H
#define LH_CLI_RUN_PROCESS_H

#include "cli/run/variables.h"

#include <signal.h>
#include <sys/types.h>

struct cli_run_process {
    pid_t pid;   /* 0: not started, or it has ended */
    pid_t group; /* stays */
    int status;  /* after its end: its exit status, or 128 and the signal's number */
    int out[2];  /* read ends: standard output, standard error; -1: closed, or not taken */
};

/* Starts the command with the rank's variables, no standard input and this signal mask; on another machine,
 * as remote.h does. 0, or the errno of what failed: ENOENT, EACCES of the command, or of the remote shell. */
int cli_run_start(const struct cli_run_job *job, uint32_t rank, char **command, const sigset_t *mask,
                  struct cli_run_process *process);
/* Whether it has ended by now. */
int cli_run_has_ended(struct cli_run_process *process);
/* To it and what it started. */
void cli_run_signal(const struct cli_run_process *process, int number);

#endif
