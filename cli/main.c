/*
 * main.c - longhaul: finds the subcommand.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "commands.h"
#include "options.h"
#include "output.h"
#include "say.h"
#include "stop.h"
#include "suggest.h"

#include <longhaul/longhaul.h>

#include <stdio.h>
#include <string.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
};

static const struct command commands[] = {
    {"send", cli_send, "send a file"},
    {"recv", cli_recv, "receive files"},
    {"perf", cli_perf, "measure bandwidth and completion time between two machines"},
    {"probe", cli_probe, "measure what the path between two machines is like"},
    {"demo", cli_demo, "see it work on this machine, over an emulated ocean"},
    {"sim", cli_sim, "simulate a network of hosts and switches, packet by packet"},
    {"plan", cli_plan, "say which scheme suits a link, and what to expect of it"},
    {"devices", cli_devices, "list what this machine can send and receive with"},
};

#define COMMANDS (sizeof commands / sizeof commands[0])

static int print_help(void)
{
    puts("usage: longhaul COMMAND [OPTION...] [ARGUMENT...]\n\n"
         "Moves bytes over long, lossy links at line rate.\n\ncommands:");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-9s%s\n", commands[i].name, commands[i].help);
    puts("\n'longhaul COMMAND --help' explains each; 'longhaul --version' tells the version.\n\n"
         "Sizes are written 64KiB, 1.5GiB or 1GB; rates 10Gbit; times 25ms; links "
         "rtt=25ms,rate=10Gbit,loss=1e-4.\n"
         "Exit status: 0 done, 1 failed, 2 asked wrongly.");
    return CLI_EXIT_OK;
}

static int print_version(void)
{
    printf("longhaul %s\n", lh_version());
    return CLI_EXIT_OK;
}

static int unknown(const char *word)
{
    const char *kind = word[0] == '-' ? "option" : "command";
    for (size_t i = 0; i < COMMANDS; i++)
        if (cli_is_close(word, commands[i].name))
            return cli_misused("unknown %s \"%s\"; did you mean %s?", kind, word, commands[i].name);
    return cli_misused("unknown %s \"%s\"; there are: send, recv, perf, probe, demo, sim, plan, devices, "
                       "--help, --version",
                       kind, word);
}

/* Runs the command that argv starts with. */
static int run(int argc, char **argv)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(argv[0], commands[i].name)) {
            cli_say_command(commands[i].name);
            cli_stop_install();
            return commands[i].run(argc, argv);
        }
    return unknown(argv[0]);
}

static int obey(int argc, char **argv)
{
    if (argc < 2)
        return cli_misused(
            "a command is missing; there are: send, recv, perf, probe, demo, sim, plan, devices "
            "('longhaul --help' explains)");
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
    return cli_output_end(obey(argc, argv));
}
