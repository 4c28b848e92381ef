/*
 * run_command.h - longhaul run: starts a group of processes, on this machine or on the hosts of a list.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RUN_RUN_COMMAND_H
#define LH_CLI_RUN_RUN_COMMAND_H

#include <stdint.h>

int cli_run(int argc, char **argv);

/* ---- hosts ----------------------------------------------------------------------------------------- */

/* Runs a command of this program as a group: rank 0 here, the others on other machines. */

/* Rank r runs on hosts[r - 1], "[USER@]HOST", by the remote shell: NULL, or with arguments, "ssh -p 2222".
 * words: those behind "longhaul", "distribute" the first; NULL ends them. There, too, the program is found
 * as here: by PATH, or in the same place. MASTER_ADDR, where it is set, is this machine's address for all of
 * them. Returns the exit status. */
int cli_run_on_hosts(const char *shell, const char *const *hosts, uint32_t count, char **words);

#endif
