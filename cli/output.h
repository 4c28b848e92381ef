/*
 * output.h - standard output: what a command prints there is written, or its exit status says that it is not.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

/* Before anything is opened: gives standard streams that are closed a file that fails each read or write, so
 * that no file or socket gets their numbers. */
void cli_output_start(void);

/* Writes what is buffered. The first failure is kept for cli_output_end(). */
void cli_output_flush(void);

/* The last call of a command: writes what is buffered and closes standard output. Returns status; where that
 * is CLI_EXIT_OK and something could not be written, CLI_EXIT_FAILED after saying why. A reader that has gone
 * is no reason to complain: the status is then that of a process that SIGPIPE ended. */
int cli_output_end(int status);

#endif
