/*
 * remote.h - a rank on another machine, which a remote shell such as ssh starts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RUN_REMOTE_H
#define LH_CLI_RUN_REMOTE_H

#include "cli/run/variables.h"

#include <stdbool.h>

/* Writes this machine's address, of packets to a host, "[USER@]HOST", in numbers; family: AF_INET, AF_INET6.
 * NULL, or why there is none; *unknown: the host's name has no address. */
const char *cli_remote_address(const char *host, int family, char address[CLI_RUN_ADDRESS_MAX],
                               bool *unknown);
/* The remote shell's words, with the host and "sh", and the script that this reads from standard input and
 * that runs the command there: no login shell has to understand it, and command lines, which all see, have no
 * secret. */
#define CLI_REMOTE_WORDS_MAX 32 /* of the remote shell; further ones are left out */
struct cli_remote_command {
    char *words[CLI_REMOTE_WORDS_MAX + 3];
    char *shell, *script;
};
/* False: no memory. */
bool cli_remote_make(const struct cli_run_job *job, uint32_t rank, char **command,
                     struct cli_remote_command *remote);
void cli_remote_free(struct cli_remote_command *remote);

#endif
