/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <longhaul/link.h>

#include "cli/options/cli_options.h"
#include "cli/run/run_ranks.h"
#include "cli/terminal/terminal.h"

/* ---- run ------------------------------------------------------------------------------------------- */

/* Longhaul run -n N [--sites N] [--link LINK] [-l] -- COMMAND [ARGUMENT...]: the options. */

/* Splits argv at "--": *count words before it; the command after it, or NULL. */
static char **split(int argc, char **argv, int *count)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--")) {
            *count = i;
            return argv[i + 1] ? argv + i + 1 : NULL;
        }
    *count = argc;
    return NULL;
}

static int check(const struct cli_run_job *job, char **command, const struct lh_link_spec *link)
{
    if (!command)
        return cli_misused("missing -- COMMAND (usage: longhaul run -n N -- COMMAND)");
    if (!job->ranks)
        return cli_misused("missing -n N, the number of ranks (usage: longhaul run -n N -- COMMAND)");
    if (job->sites > job->ranks)
        return cli_misused("--sites %" PRIu32 ": exceeds the number of ranks, %" PRIu32, job->sites,
                           job->ranks);
    if (job->sites == 1 && !lh_link_is_none(link))
        return cli_misused("--link: emulated between sites (use --sites 2 or more)");
    return CLI_PROCEED;
}

int cli_run(int argc, char **argv)
{
    struct cli_run_job job = {.sites = 1};
    struct lh_link_spec link = {0};
    char text[LH_LINK_TEXT_MAX];
    bool label = false;
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"ranks", "N", "number of processes", &job.ranks, .kind = CLI_COUNT, .letter = 'n', .min = 1,
         .max = CLI_RUN_RANKS_MAX},
        {"sites", "N", "number of sites, each a block of consecutive ranks (1)", &job.sites,
         .kind = CLI_COUNT, .min = 1, .max = CLI_RUN_RANKS_MAX},
        {"link", "LINK", "link emulated between ranks of different sites, in each direction (none)", &link,
         .kind = CLI_LINK},
        {"label", NULL, "begin each line of output with [RANK]", &label, .kind = CLI_FLAG, .letter = 'l'},
        {.name = NULL},
    };
    static const struct cli_foreign_option foreign[] = {
        {"np", "use -n N"},
        {"nproc_per_node", "use -n N"},
        {"nproc-per-node", "use -n N"},
        {"H", "starts ranks on this machine only; for several: mpirun, srun, torchrun"},
        {"host", "starts ranks on this machine only; for several: mpirun, srun, torchrun"},
        {"hostfile", "starts ranks on this machine only; for several: mpirun, srun, torchrun"},
        {NULL, NULL},
    };
    const struct cli_usage usage = {
        .command = "run",
        .operands = "-n N [OPTION...] -- COMMAND [ARGUMENT...]",
        .about = "Starts N ranks of a group on this machine, with the environment of torchrun: RANK, "
                 "WORLD_SIZE,\nMASTER_ADDR, MASTER_PORT and others. Programs create the group with "
                 "lh_group_create_env().",
        .more = "When a rank fails, the command ends the others, and returns that rank's exit status.\nFor "
                "several machines use mpirun, srun or torchrun.",
        .groups = {own},
        .foreign = foreign,
        .operands_max = 0,
        .operands_taken = "its COMMAND behind --",
    };
    char **command = split(argc, argv, &argc);
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status == CLI_PROCEED)
        status = check(&job, command, &link);
    if (status != CLI_PROCEED)
        return status;
    if (!lh_link_is_none(&link))
        job.link = lh_link_format(&link, text, sizeof text);
    return cli_run_ranks(&job, command, label);
}

/* ---- hosts ----------------------------------------------------------------------------------------- */

#define CLI_RUN_SHELL "ssh -oBatchMode=yes" /* what asks gets no answer */

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
