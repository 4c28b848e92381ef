/*
 * run.c - longhaul run -n N [--sites N] [--link LINK] [-l] -- COMMAND [ARGUMENT...]: the options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/run/run.h"

#include "cli/options/options.h"
#include "cli/run/ranks.h"
#include "cli/terminal/diagnostic.h"

#include <longhaul/link.h>

#include <inttypes.h>
#include <string.h>

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
        {"sites", "N", "number of sites, to each a block of ranks (1)", &job.sites, .kind = CLI_COUNT,
         .min = 1, .max = CLI_RUN_RANKS_MAX},
        {"link", "LINK",
         "link emulated between each two ranks of different sites, in each direction (none)", &link,
         .kind = CLI_LINK},
        {"label", NULL, "begin each line of output with [RANK]", &label, .kind = CLI_FLAG, .letter = 'l'},
        {.name = NULL},
    };
    static const struct cli_foreign_option foreign[] = {
        {"np", "use -n N"},
        {"nproc_per_node", "use -n N"},
        {"nproc-per-node", "use -n N"},
        {"H", "starts ranks on this machine alone; on several: mpirun, srun, torchrun"},
        {"host", "starts ranks on this machine alone; on several: mpirun, srun, torchrun"},
        {"hostfile", "starts ranks on this machine alone; on several: mpirun, srun, torchrun"},
        {NULL, NULL},
    };
    const struct cli_usage usage = {
        .command = "run",
        .operands = "-n N [OPTION...] -- COMMAND [ARGUMENT...]",
        .about =
            "Starts N ranks of a group on this machine, with the variables of torchrun: RANK, WORLD_SIZE, "
            "MASTER_ADDR,\nMASTER_PORT and others. Programs create the group with lh_group_create_env().",
        .more = "When a rank fails, the others are ended, and its exit status is that of this command.\n"
                "On several machines: mpirun, srun, torchrun.",
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
