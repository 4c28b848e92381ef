/*
 * file_commands.h - the commands that move files: those that connect (file_clients.c), and those that listen
 * (file_servers.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_FILE_COMMANDS_H
#define LH_CLI_FILE_FILE_COMMANDS_H

/* Each with its own argc and argv; they return the exit status. */

/* Longhaul send, recv. */
int cli_send(int argc, char **argv);
int cli_recv(int argc, char **argv);

#endif
