/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/run/hosts.h"

#include "cli/run/ranks.h"
#include "cli/run/remote.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/terminal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Rank 0 listens at all addresses where that of one host is no loopback address. */
static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

/* NULL, or why there is none to some host. */
static const char *find_by_family(struct cli_run_job *job, int family, uint32_t *rank, bool *unknown)
{
    const char *failure = NULL;
    for (*rank = 1; *rank < job->ranks; ++*rank) {
        failure = cli_remote_address(job->remotes[*rank].host, family, job->remotes[*rank].master, unknown);
        if (failure)
            break;
    }
    return failure;
}

/* Ranks reach each other by one family. */
static int find_addresses(struct cli_run_job *job)
{
    const char *given = getenv("MASTER_ADDR"), *failure = NULL;
    uint32_t rank = 1;
    bool unknown = false;
    if (given && strlen(given) >= CLI_RUN_ADDRESS_MAX)
        return cli_misused("MASTER_ADDR: longer than %d bytes", CLI_RUN_ADDRESS_MAX - 1);
    if (!given || !*given)
        failure = find_by_family(job, AF_INET, &rank, &unknown);
    if (failure && !find_by_family(job, AF_INET6, &rank, &unknown))
        failure = NULL;
    if (failure && unknown)
        return cli_failed("%s: %s (check the name; if only the remote shell knows it, set MASTER_ADDR to "
                          "the address of this machine that the hosts reach)",
                          job->remotes[rank].host, failure);
    if (failure)
        return cli_failed("%s: %s (MASTER_ADDR: the address of this machine that the hosts reach)",
                          job->remotes[rank].host, failure);
    for (rank = 1; rank < job->ranks; rank++) {
        if (given && *given)
            strcpy(job->remotes[rank].master, given);
        if (!job->master || is_loopback(job->master))
            job->master = job->remotes[rank].master;
    }
    return CLI_PROCEED;
}

/* "longhaul", as found by PATH; a path from anywhere. The words behind it; freed by the caller. */
static char **make_command(char **words, char **program)
{
    size_t count = 0;
    while (words[count])
        count++;
    char **command = calloc(count + 2, sizeof *command);
    *program = strchr(program_invocation_name, '/') ? realpath(program_invocation_name, NULL)
                                                    : strdup(program_invocation_name);
    if (!command || !*program) {
        free(command);
        free(*program);
        return NULL;
    }
    command[0] = *program;
    memcpy(command + 1, words, count * sizeof *words);
    return command;
}

static int run(struct cli_run_job *job, char **words)
{
    char *program;
    char **command = make_command(words, &program);
    if (!command)
        return cli_failed("%s: %s", program_invocation_name, strerror(errno));
    int status = cli_run_ranks(job, command, false);
    free(command);
    free(program);
    return status;
}

int cli_run_on_hosts(const char *shell, const char *const *hosts, uint32_t count, char **words)
{
    struct cli_run_job job = {.ranks = count + 1, .sites = 1, .shell = shell ? shell : CLI_RUN_SHELL};
    if (!job.shell[strspn(job.shell, " \t")])
        return cli_misused("--rsh: no command (example: --rsh 'ssh -p 2222')");
    job.remotes = calloc(job.ranks, sizeof *job.remotes);
    if (!job.remotes)
        return cli_failed("no memory for %u host%s", count, cli_plural(count));
    int status = CLI_PROCEED;
    for (uint32_t rank = 1; rank < job.ranks && status == CLI_PROCEED; rank++) {
        job.remotes[rank].host = hosts[rank - 1];
        if (!*hosts[rank - 1] || *hosts[rank - 1] == '-') /* the remote shell's option */
            status = cli_misused("\"%s\": no host (example: user@10.0.0.2)", hosts[rank - 1]);
    }
    if (status == CLI_PROCEED)
        status = find_addresses(&job);
    if (status == CLI_PROCEED)
        status = run(&job, words);
    free(job.remotes);
    return status;
}
