/*
 * stop.h - SIGINT, SIGTERM and SIGHUP: at once while there is nothing to clean up, else by a flag that
 * loops look at.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_TERMINAL_STOP_H
#define LH_CLI_TERMINAL_STOP_H

#include <stdbool.h>

/* Installs the handlers, in the mode that ends the process at once, and ignores SIGPIPE and SIGXFSZ (so
 * that writing to a closed pipe or past a file size limit is an error like any other). */
void cli_stop_install(void);

/* Whether a signal ends the process at once, with 128 + its number. Only while no file is half written and no
 * peer needs a close: waiting for a first connection, for instance. */
void cli_stop_at_once(bool at_once);

/* Files are settled; what is left is that peers take what they were told, and they may be gone. From now on a
 * signal ends the process at once; one that has come before does in a second, in which most peers take it. */
void cli_stop_leaving(void);

/* A file that is unfinished, which a signal that ends the process removes. NULL: none. Not copied. */
void cli_stop_removes(const char *path);

/* 0, or the exit status that the signal which came asks for: 130 for SIGINT, 143 for SIGTERM. */
int cli_stopped(void);

#endif
