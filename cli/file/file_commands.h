/*
 * file_commands.h - the commands that move files: those that connect (file_clients.c), and those that listen
 * (file_servers.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_FILE_COMMANDS_H
#define LH_CLI_FILE_FILE_COMMANDS_H

#include <stdbool.h>

#include "cli/options/option_values.h"

/* Options of a connection that receives files, after parsing. client: of a command that listens, what the
 * other side types after `longhaul`; else NULL. CLI_PROCEED or an exit status. */
int cli_file_check(struct cli_connection *options, const char *client);

/* Whether owners can be set: CLI_PROCEED; or CLI_EXIT_USAGE after reporting why not. */
int cli_owner_check(bool owners);

/* Each with its own argc and argv; they return the exit status. */

/* Longhaul send, get. */
int cli_send(int argc, char **argv);
int cli_get(int argc, char **argv);
/* Longhaul recv, serve. */
int cli_recv(int argc, char **argv);
int cli_serve(int argc, char **argv);

#endif
