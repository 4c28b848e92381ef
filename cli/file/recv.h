/*
 * recv.h - longhaul recv.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_RECV_H
#define LH_CLI_FILE_RECV_H

/* The command, with its own argc and argv; returns the exit status. */
int cli_recv(int argc, char **argv);

#endif
