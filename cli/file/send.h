/*
 * send.h - longhaul send.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_SEND_H
#define LH_CLI_FILE_SEND_H

/* The command, with its own argc and argv; returns the exit status. */
int cli_send(int argc, char **argv);

#endif
