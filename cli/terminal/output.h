/*
 * output.h - standard output: failed writes are detected and reported by the exit status.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_TERMINAL_OUTPUT_H
#define LH_CLI_TERMINAL_OUTPUT_H

/* Before anything is opened: gives standard streams that are closed a file that fails each read or write, so
 * that no file or socket gets their numbers. */
void cli_output_start(void);

/* Nobody else prints lines or bars until cli_output_unlock(). May be nested. */
void cli_output_lock(void);
void cli_output_unlock(void);
/* Bars are lines below all others, on a terminal at stderr, that are drawn again and again: number 0, 1 and
 * so on, one after the other. With the lock. */
void cli_output_bar(unsigned number, const char *line);
/* Takes the bars away, so that other lines can be printed. With the lock. */
void cli_output_erase_bars(void);

/* Writes what is buffered. The first failure is kept for cli_output_end(). */
void cli_output_flush(void);

/* The last call of a command: writes what is buffered and closes standard output. 0, or the errno of the
 * first failure. */
int cli_output_end(void);

#endif
