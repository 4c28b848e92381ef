/*
 * main.c - longhaul: finds the subcommand.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <longhaul/device.h>
#include <longhaul/error.h>
#include <longhaul/longhaul.h>
#include <longhaul/units.h>

#include "cli/commands.h"
#include "cli/file/file_commands.h"
#include "cli/options/cli_options.h"
#include "cli/perf/perf_messages.h"
#include "cli/results/json.h"
#include "cli/run/run_ranks.h"
#include "cli/terminal/terminal.h"

/* ---- devices --------------------------------------------------------------------------------------- */

/*
 * Longhaul devices.
 *
 * Longhaul devices [--json]: what can be used here, and what cannot and why.
 */

static const struct cli_column columns[] = {
    {"device", 22, true},     {"interface", 10, true}, {"address", 16, true},
    {"MTU", 5, false},        {"rate", 10, false},     {"late packets", 12, true},
    {"congestion", 13, true}, {"features", 10, true},  {.title = NULL},
};

static void set(struct cli_cell *cell, const char *text)
{
    snprintf(cell->text, sizeof cell->text, "%s", text[0] != '\0' ? text : "-");
}

static void print_device(const struct cli_table *table, const struct lh_device *device)
{
    struct cli_cell cells[sizeof columns / sizeof columns[0]] = {0};
    char mtu[16] = "";
    char rate[LH_FORMAT_MAX] = "";
    if (device->mtu_bytes != 0)
        snprintf(mtu, sizeof mtu, "%u", device->mtu_bytes);
    if (device->rate_bps != 0)
        lh_format_rate((double)device->rate_bps, rate, sizeof rate);
    set(&cells[0], device->name);
    set(&cells[1], device->interface);
    set(&cells[2], device->address);
    set(&cells[3], mtu);
    set(&cells[4], rate);
    set(&cells[5], device->late_packets);
    set(&cells[6], device->congestion);
    set(&cells[7], device->features);
    cli_table_row(table, cells);
}

static void print_table(const struct lh_device *devices, size_t count)
{
    struct cli_table table = {columns, stdout, "", cli_terminal_colours(STDOUT_FILENO)};
    cli_table_titles(&table);
    for (size_t i = 0; i < count; i++)
        if (devices[i].trouble[0] == '\0')
            print_device(&table, &devices[i]);
    for (size_t i = 0; i < count; i++) {
        const struct lh_device *device = &devices[i];
        if (device->trouble[0] != '\0')
            printf("%s%s%s: %s\n", device->fabric, device->interface[0] != '\0' ? " " : "",
                   device->interface, device->trouble);
    }
}

static void put_device(struct cli_json *json, const struct lh_device *device)
{
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "device", device->name);
    cli_json_text(json, "fabric", device->fabric);
    cli_json_text(json, "interface", device->interface);
    cli_json_text(json, "address", device->address);
    cli_json_count(json, "mtu_bytes", device->mtu_bytes);
    cli_json_count(json, "rate_bps", device->rate_bps);
    cli_json_text(json, "late_packets", device->late_packets);
    cli_json_text(json, "congestion", device->congestion);
    cli_json_text(json, "features", device->features);
    cli_json_text(json, "trouble", device->trouble);
    cli_json_close(json, '}');
}

static void print_json(const struct lh_device *devices, size_t count)
{
    struct cli_json json = {.out = stdout};
    cli_json_open(&json, NULL, '[');
    for (size_t i = 0; i < count; i++)
        put_device(&json, &devices[i]);
    cli_json_close(&json, ']');
    cli_json_end(&json);
}

/* The command, with its own argc and argv; returns the exit status. */
static int cli_devices(int argc, char **argv)
{
    bool as_json = false;
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"json", NULL, "print an array of objects instead of a table", &as_json, .kind = CLI_FLAG},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "devices",
        .operands = "[--json]",
        .about = "Lists the network devices of this machine: the values of --device, and their "
                 "features.\nUnusable devices follow, with the reason.",
        .groups = {own},
        .operands_max = 0,
    };
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status != CLI_PROCEED)
        return status;
    struct lh_device *devices;
    size_t count;
    if (lh_devices(&devices, &count) != 0)
        return cli_failed("%s", lh_last_error());
    if (as_json)
        print_json(devices, count);
    else
        print_table(devices, count);
    lh_devices_free(devices);
    return CLI_EXIT_OK;
}

/* ---- main ------------------------------------------------------------------------------------------ */

/* As shells report a process that a signal ended. */
#define EXIT_BY_SIGNAL 128

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
};

static const struct command commands[] = {
    {"send", cli_send, "send files and folders"},
    {"recv", cli_recv, "receive files and folders"},
    {"get", cli_get, "get files and folders from longhaul serve"},
    {"serve", cli_serve, "serve files and folders, until a signal"},
    {"perf", cli_perf, "measure bandwidth and completion time between two machines"},
    {"probe", cli_probe, "measure rate, delay and loss of the path between two machines"},
    {"run", cli_run, "start the ranks of a group on this machine"},
    {"collective", cli_collective, "measure collectives of a group, and check their results"},
    {"distribute", cli_distribute, "send a file to many hosts, or to all ranks of a group"},
    {"demo", cli_demo, "transfer over an emulated ocean link, on this machine"},
    {"sim", cli_sim, "simulate a network of hosts and switches, packet by packet"},
    {"plan", cli_plan, "recommend a reliability scheme for a link and predict completion times"},
    {"key", cli_key, "make a key file, or print the fingerprint of one"},
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
         "Exit status: 0 success, 1 failure, 2 usage error, 3 peer or path lost (send, recv, get).");
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
