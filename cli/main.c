/*
 * main.c - longhaul: finds the subcommand.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/collective/collective.h"
#include "cli/demo/demo.h"
#include "cli/devices.h"
#include "cli/distribute/distribute.h"
#include "cli/file/recv.h"
#include "cli/file/send.h"
#include "cli/options/suggest.h"
#include "cli/perf/perf.h"
#include "cli/plan/plan.h"
#include "cli/probe/probe.h"
#include "cli/run/run.h"
#include "cli/sim/sim.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/output.h"
#include "cli/terminal/stop.h"

#include <longhaul/longhaul.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* As shells report a process that a signal ended. */
#define EXIT_BY_SIGNAL 128

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
};

static const struct command commands[] = {
    {"send", cli_send, "send a file"},
    {"recv", cli_recv, "receive files"},
    {"perf", cli_perf, "measure bandwidth and completion time between two machines"},
    {"probe", cli_probe, "measure rate, delay and loss of the path between two machines"},
    {"run", cli_run, "start the ranks of a group on this machine"},
    {"collective", cli_collective, "measure collectives of such a group, and check their results"},
    {"distribute", cli_distribute, "send a file to each HOST, or to all ranks of such a group"},
    {"demo", cli_demo, "transfer over an emulated ocean link, on this machine"},
    {"sim", cli_sim, "simulate a network of hosts and switches, packet by packet"},
    {"plan", cli_plan, "recommend a reliability scheme for a link and predict completion times"},
    {"devices", cli_devices, "list the network devices of this machine"},
};

#define COMMANDS (sizeof commands / sizeof commands[0])
#define LIST_MAX 256 /* bytes of all names in a message */

static int print_help(void)
{
    puts("usage: longhaul COMMAND [OPTION...] [ARGUMENT...]\n\n"
         "Moves data over long, lossy links at line rate.\n\ncommands:");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-12s%s\n", commands[i].name, commands[i].help);
    puts("\nSee 'longhaul COMMAND --help' for each; 'longhaul --version' prints the version.\n\n"
         "Values: sizes 64KiB, 1.5GiB, 1GB; rates 10Gbit; times 25ms; links "
         "rtt=25ms,rate=10Gbit,loss=1e-4.\n"
         "Exit status: 0 success, 1 failure, 2 usage error.");
    return CLI_EXIT_OK;
}

static int print_version(void)
{
    printf("longhaul %s\n", lh_version());
    return CLI_EXIT_OK;
}

/* "send, recv, perf": the last after `before_last`. */
static const char *list_commands(const char *before_last, char *text, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < COMMANDS && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 i == 0              ? ""
                                 : i + 1 == COMMANDS ? before_last
                                                     : ", ",
                                 commands[i].name);
    return text;
}

static int unknown(const char *word)
{
    char list[LIST_MAX];
    const char *kind = word[0] == '-' ? "option" : "command";
    for (size_t i = 0; i < COMMANDS; i++)
        if (cli_is_close(word, commands[i].name))
            return cli_misused("%s: unknown %s (did you mean %s?)", word, kind, commands[i].name);
    return cli_misused("%s: unknown %s (%s, --help, --version)", word, kind,
                       list_commands(", ", list, sizeof list));
}

/* Runs the command that argv starts with. */
static int run(int argc, char **argv)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(argv[0], commands[i].name)) {
            cli_diagnostic_command(commands[i].name);
            cli_stop_install();
            return commands[i].run(argc, argv);
        }
    return unknown(argv[0]);
}

static int obey(int argc, char **argv)
{
    char list[LIST_MAX];
    if (argc < 2)
        return cli_misused("missing command: %s (see longhaul --help)",
                           list_commands(" or ", list, sizeof list));
    const char *word = argv[1];
    if (!strcmp(word, "help") && argc > 2)
        return run(2, (char *[]){argv[2], "--help", NULL});
    if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help"))
        return print_help();
    if (!strcmp(word, "--version") || !strcmp(word, "-V"))
        return print_version();
    return run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    cli_output_start();
    int status = obey(argc, argv), error = cli_output_end();
    if (status != CLI_EXIT_OK || !error)
        return status;
    /* A reader that is gone: the status of a process that SIGPIPE ended. */
    return error == EPIPE ? EXIT_BY_SIGNAL + SIGPIPE : cli_failed("standard output: %s", strerror(error));
}
